import zipfile

import numpy as np
import pytest

from gnnperf.datasets.graph_store import GraphStore, graph_key
from gnnperf.errors import DataError
from gnnperf.graph.arrays import NODE_FIELDS, GraphArrays


def chain(length: int, seed: int) -> GraphArrays:
    rng = np.random.default_rng(seed)
    node = rng.integers(0, 1000, (length, len(NODE_FIELDS))).astype(float)
    edges = np.array([np.arange(length - 1), np.arange(1, length)], np.int32)
    sizes = rng.integers(1, 5, length - 1) * 1024.0
    return GraphArrays(rng.integers(0, 20, length).astype(np.int16), node, edges, sizes, 12.0, 40.0)


def assert_same(a: GraphArrays, b: GraphArrays):
    for name in ("op_class", "node", "edge_index", "edge_bytes"):
        got, want = getattr(a, name), getattr(b, name)
        assert got.dtype == want.dtype and np.array_equal(got, want), name
    assert (a.input_bytes, a.output_bytes, a.batch) == (b.input_bytes, b.output_bytes, b.batch)


@pytest.fixture
def graphs():
    return [chain(5, 0), chain(1, 1), chain(30, 2), chain(5, 3)]


def test_round_trip(graphs, tmp_path):
    store = GraphStore()
    keys = [store.add(graph) for graph in graphs]
    store.save(tmp_path / "g.npz")
    loaded = GraphStore.load(tmp_path / "g.npz")
    assert list(loaded.keys()) == keys and len(loaded) == 4
    for key, graph in zip(keys, graphs, strict=True):
        assert_same(store[key], graph)
        assert_same(loaded[key], graph)
    assert loaded.damaged_keys() == []


def test_names_are_kept(graphs, tmp_path):
    store = GraphStore()
    keys = [store.add(graph) for graph in graphs]
    store.names = {"timm/b@224": keys[2], "timm/a@160": keys[0], "timm/same@160": keys[0]}
    store.save(tmp_path / "g.npz")
    assert GraphStore.load(tmp_path / "g.npz").names == store.names


def test_a_store_from_before_names_is_read(graphs, tmp_path):
    store = GraphStore()
    store.add(graphs[0])
    store.save(tmp_path / "g.npz")
    with np.load(tmp_path / "g.npz") as archive:
        older = {name: archive[name] for name in archive.files if name not in ("names", "named")}
    np.savez(tmp_path / "g.npz", **older)
    loaded = GraphStore.load(tmp_path / "g.npz")
    assert loaded.names == {} and list(loaded.keys()) == list(store.keys())


def test_equal_graphs_are_stored_once_also_after_loading(graphs, tmp_path):
    store = GraphStore()
    keys = [store.add(graph) for graph in graphs + graphs]
    assert keys[:4] == keys[4:] and len(store) == 4
    store.save(tmp_path / "g.npz")
    loaded = GraphStore.load(tmp_path / "g.npz")
    assert loaded.add(chain(30, 2)) == keys[2] and len(loaded) == 4
    new = loaded.add(chain(7, 9))
    assert_same(loaded[new], chain(7, 9))


def test_the_key_tells_operators_edges_and_sizes_apart():
    base = chain(4, 0)
    variants = [chain(4, 0) for _ in range(4)]
    variants[0].node[2, 3] += 1
    variants[1].op_class[0] += 1
    variants[2].edge_index[0, 2] = 0
    variants[3].edge_bytes[1] += 4
    assert len({graph_key(graph) for graph in [base, *variants]}) == 5


def test_graphs_at_another_batch_are_refused(graphs):
    with pytest.raises(DataError, match="batch 1"):
        GraphStore().add(graphs[0].at_batch(8))


def test_unknown_key_and_missing_file_are_told(tmp_path):
    with pytest.raises(DataError, match="no graph 'ab'"):
        GraphStore()["ab"]
    with pytest.raises(DataError, match="cannot read"):
        GraphStore.load(tmp_path / "absent.npz")


@pytest.mark.parametrize("cut", [0.0, 0.3, 0.9])
def test_a_truncated_file_is_told(graphs, tmp_path, cut):
    store = GraphStore()
    for graph in graphs:
        store.add(graph)
    path = tmp_path / "g.npz"
    store.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(cut * len(content))])
    with pytest.raises(DataError, match="import the sources again"):
        GraphStore.load(path)


def test_a_changed_operator_is_noticed(graphs, tmp_path):
    store = GraphStore()
    keys = [store.add(graph) for graph in graphs]
    path = tmp_path / "g.npz"
    store.save(path)
    with np.load(path) as archive:
        data = dict(archive)
    data["rows"][data["nodes"][5]] += 1  # the single operator of the second graph
    with path.open("wb") as stream:
        np.savez(stream, **data)
    assert GraphStore.load(path).damaged_keys() == [keys[1]]


def test_a_zip_bomb_is_not_unpacked(graphs, tmp_path, monkeypatch):
    path = tmp_path / "g.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("rows.npy", "w") as member:
        for _ in range(600):
            member.write(bytes(2**20))
    assert path.stat().st_size < 2**20
    monkeypatch.setattr(zipfile.ZipExtFile, "read", lambda *_: pytest.fail("unpacked"))
    with pytest.raises(DataError, match="512 MiB"):
        GraphStore.load(path)


def test_an_array_that_claims_terabytes_is_refused(tmp_path):
    header = np.lib.format.magic(1, 0)
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }\n"
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
        archive.writestr("format.npy", header + len(text).to_bytes(2, "little") + text + bytes(64))
    with pytest.raises(DataError, match="damaged"):
        GraphStore.load(tmp_path / "g.npz")


def test_pickled_arrays_are_refused_and_not_run(tmp_path):
    class Payload:
        def __reduce__(self):
            return (tmp_path.joinpath("ran").touch, ())

    np.savez(tmp_path / "g.npz", format=np.array([Payload()], object))
    with pytest.raises(DataError, match="damaged"):
        GraphStore.load(tmp_path / "g.npz")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("change", ["edge_source", "edge_distance", "lengths"])
def test_edges_that_leave_their_graph_are_refused(graphs, tmp_path, change):
    store, path = GraphStore(), tmp_path / "g.npz"
    for graph in graphs:
        store.add(graph)
    store.save(path)
    with np.load(path) as archive:
        data = dict(archive)
    data[change] = data[change].copy()
    data[change][:2] += [1000, -1000]
    np.savez(path, **data)
    with pytest.raises(DataError, match="damaged"):
        GraphStore.load(path)


def test_a_failed_save_keeps_the_old_file(graphs, tmp_path, monkeypatch):
    path = tmp_path / "g.npz"
    store = GraphStore()
    store.add(graphs[0])
    store.save(path)
    store.add(graphs[1])

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.save(path)
    assert len(GraphStore.load(path)) == 1
    assert [item.name for item in tmp_path.iterdir()] == ["g.npz"]


def test_an_empty_store_round_trips(tmp_path):
    GraphStore().save(tmp_path / "g.npz")
    assert len(GraphStore.load(tmp_path / "g.npz")) == 0
