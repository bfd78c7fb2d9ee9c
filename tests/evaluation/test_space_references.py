import numpy as np
import pytest

from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.graph_building import build_arrays
from gnnperf.datasets.graph_store import GraphStore
from gnnperf.datasets.schema import concatenate, measurements
from gnnperf.devices.correction import SCALES
from gnnperf.evaluation.scoring import score_rows
from gnnperf.evaluation.space_references import (
    adapted_latencies,
    operator_count_latencies,
    repeated_latencies,
    row_components,
)
from gnnperf.predictor import Predictor

TWINS = ("nasbench201/123401", "nasbench201/140231")


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return Predictor.load()


@pytest.fixture(scope="module")
def space() -> Dataset:
    """Cells that differ in their operators and one pair that does not, at two batch sizes."""
    store, frames = GraphStore(), []
    for model in (*TWINS, *(f"nasbench201/{a}{b}3{c}41" for a in range(1, 4) for b in range(1, 4) for c in range(2))):
        key = store.add(build_arrays(model))
        frame = measurements(
            source="made", model=[model] * 2, device="1080ti", stack="pytorch", batch=[1, 32], latency_ms=[1.0, 2.0],
            citation="made", phase="inference", kind="model",
        )  # fmt: skip
        frames.append(frame.assign(graph_key=key))
    return Dataset(None, concatenate(frames), store)


def test_a_machine_that_is_slower_throughout_is_adapted_to(space, predictor):
    """Launches take 1.6 times as long there, and all device times 1.3 times."""
    scales = np.zeros(len(SCALES))
    scales[:2] = np.log(1.6), np.log(1.3)
    frame = space.frame.assign(latency_ms=row_components(space.frame, space, predictor).scaled(scales)[0])
    scored, train = frame.iloc[:4], frame.iloc[4:]
    adapted = adapted_latencies(train, scored, space, predictor)
    unadapted = row_components(scored, space, predictor).latency_ms
    np.testing.assert_allclose(adapted, scored["latency_ms"], rtol=0.01)
    assert (np.abs(unadapted / scored["latency_ms"] - 1) > 0.2).all()


def test_what_was_measured_twice_is_known_from_the_other_run_at_the_same_batch(space):
    frame = space.frame.assign(latency_ms=np.arange(1.0, len(space.frame) + 1))
    twins = frame["model"].isin(TWINS)
    first, second = (frame[frame["model"] == name] for name in TWINS)
    np.testing.assert_array_equal(repeated_latencies(second, first, space), second["latency_ms"])
    assert np.isnan(repeated_latencies(frame[~twins], first, space)).all()


def test_each_space_is_a_space_of_its_own(space, predictor):
    elsewhere = space.frame.assign(device="titan-xp")
    for references in (operator_count_latencies, repeated_latencies):
        assert np.isnan(references(elsewhere, space.frame, space)).all()
    assert np.isnan(adapted_latencies(elsewhere, space.frame.iloc[:2], space, predictor)).all()


def test_only_folds_inside_a_space_have_these_references(space, predictor):
    test, train = space.frame.iloc[:4], space.frame.iloc[4:]
    names = ["operator_counts_ms", "adapted_ms", "repeated_ms"]
    assert score_rows("inside", test, train, space, predictor)[names].isna().all(axis=None)
    inside = score_rows("inside", test, train, space, predictor, in_space=True)
    assert inside[["operator_counts_ms", "adapted_ms"]].notna().all(axis=None) and inside["repeated_ms"].isna().all()
