"""The cache of graphs gives back what was read, notices what differs, and survives damage and company."""

import json
import multiprocessing
import os

import numpy as np
import onnx
import pytest

from gnnperf import graph_cache, zoo
from gnnperf.errors import ModelFileError
from gnnperf.graph import read_graph, to_arrays
from gnnperf.graph_cache import SWITCH, GraphCache


@pytest.fixture
def cache(tmp_path):
    return GraphCache(tmp_path / "cache")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(zoo.build("squeezenet1_1", "N"), path)
    return path


def entries(cache):
    return [path for path in cache.folder.rglob("*") if path.is_file()]


@pytest.fixture
def reads(monkeypatch):
    """Counts how often a file is really read."""
    calls = []

    def counted(*arguments, **options):
        calls.append(arguments)
        return read_graph(*arguments, **options)

    monkeypatch.setattr(graph_cache, "read_graph", counted)
    return calls


@pytest.mark.parametrize("spec", ["lenet5", "resnet50", "gpt2", "nasbench201/012340", "shufflenet_v2_x1_0"])
def test_what_comes_back_is_what_was_read(cache, tmp_path, reads, spec):
    path = tmp_path / "net.onnx"
    onnx.save(zoo.build(spec), path)
    graph = read_graph(path)
    assert cache.read_graph(path) == graph and cache.read_graph(path) == graph and len(reads) == 1
    again = to_arrays(cache.read_graph(path))
    np.testing.assert_array_equal(again.node, to_arrays(graph).node)


def test_every_real_file_comes_back_as_it_was_read(shared, cache):
    count = 0
    for path in sorted((shared / "onnx").glob("*.onnx")):
        try:
            graph = read_graph(path)
        except ModelFileError:
            continue
        assert cache.read_graph(path) == cache.read_graph(path) == graph
        count += 1
    assert count > 15


def test_other_sizes_are_other_entries_and_weights_are_none(cache, file, reads):
    for options in ({}, {"batch": 2}, {"batch": 3}, {"input_shapes": {"input": (1, 3, 64, 64)}}):
        name = onnx.load(file).graph.input[0].name
        if "input_shapes" in options:
            options = {"input_shapes": {name: (1, 3, 64, 64)}}
        for _ in range(2):
            assert cache.read_graph(file, **options) == read_graph(file, **options)
    assert len(reads) == len(entries(cache)) == 4
    model = onnx.load(file)
    zoo.fill_weights(model, seed=0)
    onnx.save(model, file)
    large = sum(tensor.ByteSize() > 1024 for tensor in model.graph.initializer)
    assert large and cache.read_graph(file).macs == read_graph(file).macs


def test_a_file_of_another_name_is_another_graph(cache, file):
    other = file.with_name("other.onnx")
    other.write_bytes(file.read_bytes())
    assert [cache.read_graph(path).name for path in (file, other)] == ["net", "other"]


def test_other_code_does_not_see_old_entries(cache, file, reads, monkeypatch):
    cache.read_graph(file)
    monkeypatch.setattr(graph_cache, "_code_version", lambda: "another")
    cache.read_graph(file)
    assert len(reads) == 2


@pytest.mark.parametrize("damage", [b"", b"junk", None])
def test_a_damaged_entry_is_read_anew_and_replaced(cache, file, reads, damage):
    graph = cache.read_graph(file)
    (entry,) = entries(cache)
    content = entry.read_bytes()
    entry.write_bytes(content[:-20] if damage is None else damage)
    assert cache.read_graph(file) == graph and len(reads) == 2
    assert entry.read_bytes() == content


def test_a_folder_that_cannot_be_written_is_no_error(file, tmp_path):
    (tmp_path / "taken").write_text("a file")
    assert GraphCache(tmp_path / "taken").read_graph(file) == read_graph(file)


def test_a_bad_file_is_an_error_and_no_entry(cache, tmp_path):
    path = tmp_path / "bad.onnx"
    path.write_bytes(b"no network at all")
    for _ in range(2):
        with pytest.raises(ModelFileError, match=r"bad\.onnx"):
            cache.read_graph(path)
    assert not cache.folder.exists()


def test_it_stays_within_its_size_and_drops_what_was_not_used_for_longest(tmp_path, monkeypatch):
    monkeypatch.setattr(graph_cache, "_SHARDS", 1)
    monkeypatch.setattr(graph_cache, "_LOOK_EVERY", 1)
    one = GraphCache(tmp_path / "one")
    model = zoo.build("lenet5", "N").SerializeToString()
    one.read_graph(model, batch=1)
    size = entries(one)[0].stat().st_size
    small = GraphCache(tmp_path / "small", max_bytes=10 * size)
    for batch in range(1, 31):
        small.read_graph(model, batch=batch)
        newest = max(entries(small), key=lambda path: path.stat().st_mtime_ns)
        for path in entries(small):  # a clock that ticks between two writes
            if path != newest:
                os.utime(path, ns=(0, path.stat().st_mtime_ns - 10**9))
    assert 3 < len(entries(small)) <= 10
    names = {path.name for path in entries(small)}
    small.read_graph(model, batch=30)
    assert {path.name for path in entries(small)} == names  # the newest was kept


def test_what_is_larger_than_its_share_is_not_kept(tmp_path, file):
    tiny = GraphCache(tmp_path / "tiny", max_bytes=64)
    assert tiny.read_graph(file) == read_graph(file) and not tiny.folder.exists()


def _write_often(folder, model, batches):
    cache = GraphCache(folder)
    return [cache.read_graph(model, batch=batch).macs for batch in batches for _ in range(3)]


def test_processes_share_it(tmp_path):
    model = zoo.build("lenet5", "N").SerializeToString()
    batches = [1, 2, 3, 4] * 5
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.starmap(_write_often, [(tmp_path, model, batches), (tmp_path, model, batches[::-1])])
    assert found[0] == [read_graph(model, batch=batch).macs for batch in batches for _ in range(3)]
    assert len(found[1]) == 60 and found[1] == found[0][::-1]
    assert len(entries(GraphCache(tmp_path))) == 4


def test_the_environment_says_where_it_is_or_that_it_is_off(monkeypatch, tmp_path):
    assert GraphCache.of_user() is None  # as in all tests
    monkeypatch.setenv(SWITCH, str(tmp_path))
    assert GraphCache.of_user().folder == tmp_path
    monkeypatch.delenv(SWITCH)
    assert GraphCache.of_user().folder.parts[-2:] == ("gnnperf", "graphs")


def test_entries_are_json_alone(cache, file):
    import zlib

    cache.read_graph(file)
    assert json.loads(zlib.decompress(entries(cache)[0].read_bytes()))["name"] == "net"
