"""Many networks at once: the same figures as one by one, in order, whatever fails, on processes and on a cluster."""

import os

import numpy as np
import onnx
import pytest

from gnnperf import Predictor, many, zoo
from gnnperf.errors import GnnperfError, ModelFileError
from gnnperf.graph import OpGraph, read_graph
from gnnperf.graph_cache import GraphCache

SPECS = ("lenet5", "squeezenet1_1", "resnet18", "nasbench201/012340", "mobilenet_v2")


@pytest.fixture(scope="module")
def predictor():
    return Predictor.load()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for number, spec in enumerate(SPECS):
        onnx.save(zoo.build(spec, "N"), folder / f"{number}.onnx")
    return sorted(folder.glob("*.onnx"))


def latencies(outcomes):
    return [[prediction.latency_ms for prediction in outcome.predictions] for outcome in outcomes]


def test_as_one_by_one_for_all_devices_batches_and_phases(predictor, files):
    outcomes = list(
        predictor.predict_many(files, device=["1080ti", "v100"], batch=[1, 8], phase=["inference", "training"])
    )
    assert [outcome.source for outcome in outcomes] == files
    for outcome in outcomes:
        assert outcome.error is None
        alone = [
            predictor.predict(outcome.source, device=device, batch=batch, phase=phase)
            for batch in (1, 8)
            for device in ("1080ti", "v100")
            for phase in ("inference", "training")
        ]
        for one, other in zip(outcome.predictions, alone, strict=True):
            assert one.latency_ms == pytest.approx(other.latency_ms, rel=1e-4)
            assert (one.model, one.device, one.batch, one.phase) == (
                other.model,
                other.device,
                other.batch,
                other.phase,
            )
            assert one.memory == other.memory


def test_files_bytes_models_graphs_and_functions_mix(predictor, files):
    model = onnx.load(files[0])
    sources = [files[0], str(files[0]), files[0].read_bytes(), model, read_graph(files[0]), lambda: model]
    found = latencies(predictor.predict_many(sources))
    assert len(found) == 6
    np.testing.assert_allclose(np.ravel(found), found[0][0], rtol=1e-4)


def test_a_failure_is_an_outcome_and_the_others_go_on(predictor, files, tmp_path):
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"junk")
    sources = [files[0], bad, tmp_path / "none.onnx", OpGraph("empty"), files[1]]
    outcomes = list(predictor.predict_many(sources))
    assert [type(outcome.error) for outcome in outcomes] == [type(None), *[ModelFileError] * 3, type(None)]
    assert [len(outcome.predictions) for outcome in outcomes] == [1, 0, 0, 0, 1]
    fixed = zoo.build("resnet18")
    outcome = next(predictor.predict_many([fixed], batch=[1, 2, 2**40]))
    assert outcome.error is not None and len(outcome.predictions) == 2  # what came before the error


def test_a_wrong_device_or_phase_is_said_at_once(predictor, files):
    for wrong in ({"device": "no such card"}, {"phase": "sideways"}):
        with pytest.raises(GnnperfError):
            predictor.predict_many(files, **wrong)


def test_sources_are_taken_as_they_are_needed(predictor, files):
    def endless():
        while True:
            yield files[0]

    outcomes = predictor.predict_many(endless())
    assert [next(outcomes).error for _ in range(40)] == [None] * 40


def test_large_graphs_run_in_parts_and_small_ones_together(predictor, files, monkeypatch):
    together = latencies(predictor.predict_many(files * 4))
    runs = []
    predict = predictor.predict_graphs
    monkeypatch.setattr(
        predictor, "predict_graphs", lambda inputs, top: runs.append(len(inputs)) or predict(inputs, top)
    )
    monkeypatch.setattr(many, "_NODES_PER_RUN", 60)
    apart = latencies(predictor.predict_many(files * 4))
    assert len(runs) > 5 and sum(runs) == 20
    np.testing.assert_allclose(apart, together, rtol=1e-4)


def test_top_limits_the_operators(predictor, files):
    (outcome,) = predictor.predict_many(files[2:3], top=3)
    everything = predictor.predict(files[2]).operators
    assert [operator.name for operator in outcome.predictions[0].operators] == [o.name for o in everything[:3]]


def test_with_a_cache(predictor, files, tmp_path):
    cache = GraphCache(tmp_path)
    plain = latencies(predictor.predict_many(files))
    for _ in range(2):
        np.testing.assert_allclose(latencies(predictor.predict_many(files, cache=cache)), plain, rtol=1e-6)
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == len(files)


class Killer:
    """Ends the process that unpickles it, as a defect in a native library would."""

    def __reduce__(self):
        return os._exit, (7,)


def test_processes_give_the_same_and_outlive_what_kills_one(predictor, files, monkeypatch):
    pytest.importorskip("joblib", reason="needs joblib")
    monkeypatch.setattr(many, "_CHUNK", 2)
    plain = latencies(predictor.predict_many(files * 2))
    sources = [*files * 2]
    sources.insert(5, Killer())
    outcomes = list(predictor.predict_many(sources, jobs=2))
    assert [outcome.error is None for outcome in outcomes] == [number != 5 for number in range(len(sources))]
    assert "killed the process" in str(outcomes[5].error)
    np.testing.assert_allclose(latencies(outcomes[:5] + outcomes[6:]), plain, rtol=1e-4)


def test_a_path_is_one_source(predictor, files):
    (outcome,) = predictor.predict_many(str(files[0]))
    assert outcome.error is None and len(outcome.predictions) == 1


def test_no_jobs_at_all_are_refused(predictor, files):
    with pytest.raises(GnnperfError, match="jobs"):
        predictor.predict_many(files, jobs=0)


@pytest.mark.parametrize("name", ["device", "phase", "batch"])
def test_nothing_to_predict_is_refused(predictor, files, name):
    with pytest.raises(GnnperfError, match=f"no {name} is given"):
        predictor.predict_many(files, **{name: []})


def test_without_joblib_more_jobs_are_one_line(predictor, files, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "joblib", None)
    with pytest.raises(GnnperfError, match="needs joblib"):
        list(predictor.predict_many(files, jobs=2))


def test_the_same_call_runs_on_a_cluster(predictor, files, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs dask's distributed: pip install 'gnnperf[cluster]'")
    joblib = pytest.importorskip("joblib")
    monkeypatch.setattr(many, "_CHUNK", 2)
    plain = latencies(predictor.predict_many(files))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client, joblib.parallel_config(backend="dask"):
            outcomes = list(predictor.predict_many(files, jobs=-1))
            workers = client.run(lambda: os.getpid())
            ran = client.run(lambda dask_worker: dask_worker.state.executed_count)
    assert len(set(workers.values()) - {os.getpid()}) == 2 and sum(ran.values()) > 0
    np.testing.assert_allclose(latencies(outcomes), plain, rtol=1e-4)
