"""Baselines on whole networks."""

import numpy as np
import pytest

from gnnperf.baselines import BASELINES
from gnnperf.baselines.refined_roofline import operator_ms
from gnnperf.conditions import Phase
from gnnperf.datasets.graph_building import build_arrays
from gnnperf.datasets.graph_store import GraphStore
from gnnperf.datasets.schema import concatenate, measurements
from gnnperf.devices import get_device
from gnnperf.devices.roofline import graph_roofline_ms, roofline_ms
from gnnperf.errors import DataError
from gnnperf.graph.arrays import to_arrays
from gnnperf.graph.opgraph import Node, OpClass, OpGraph

DEVICE = get_device("1080ti")
FITTED = ("linear", "nearest-neighbour", "nnlp")
NETWORKS = ("squeezenet1_1", "squeezenet1_0", "resnet18", "resnet34", "mobilenet_v2")


@pytest.fixture(scope="module")
def measured():
    """Rows of five networks on two devices, 1.5 times their roofline and 0.2 ms, and their graphs."""
    store, frames = GraphStore(), []
    for model in NETWORKS:
        graph = build_arrays(model)
        key = store.add(graph)
        for device in ("1080ti", "v100-pcie"):
            batches = [1, 2, 4, 8, 16]
            bounds = np.array([graph_roofline_ms(graph.at_batch(batch), get_device(device)) for batch in batches])
            for phase, passes in (("inference", 1), ("training", 3)):
                rows = measurements(
                    source="made", model=[model] * 5, device=device, stack="pytorch", batch=batches, phase=phase,
                    latency_ms=1.5 * passes * bounds + 0.2, citation="made",
                )  # fmt: skip
                frames.append(rows.assign(graph_key=key))
    return concatenate(frames), store


@pytest.mark.parametrize("phase", Phase)
def test_the_roofline_counts_a_backward_pass_as_two(phase):
    graph = build_arrays("resnet18").at_batch(8)
    passes = {"inference": 1, "forward": 1, "backward": 2, "training": 3}[phase]
    for name in ("roofline", "refined-roofline"):
        baseline = BASELINES[name]().fit(None, None)
        forward = baseline.predict(graph, DEVICE, 8, Phase.INFERENCE)
        assert baseline.predict(graph, DEVICE, 8, phase) == pytest.approx(passes * forward)


def gemm(m, n, k):
    node = Node("g", "Gemm", OpClass.GEMM, macs=m * n * k, flops=2 * m * n * k, gemm=(m, n, k, 1))
    return to_arrays(OpGraph("g", [node]))


def test_products_that_fill_the_device_reach_the_attainable_share():
    # 64 x 56 tiles of 128 x 64: exactly 128 waves over 28 multiprocessors.
    full = gemm(64 * 128, 56 * 64, 1024)
    assert operator_ms(full, DEVICE) == pytest.approx(roofline_ms(full, DEVICE) / 0.75)


def test_padding_and_waves_cost_time():
    def per_operation(m, n, k):
        return operator_ms(gemm(m, n, k), DEVICE)[0] / (m * n * k)

    reference = per_operation(64 * 128, 56 * 64, 1024)
    assert per_operation(64 * 128, 56 * 64, 3) == pytest.approx(reference * 8 / 3)
    assert per_operation(28 * 128, 33, 1024) == pytest.approx(reference * 64 / 33)
    # One tile more than a wave takes two waves.
    assert per_operation(29 * 128, 64, 1024) == pytest.approx(reference * 56 / 29)
    assert per_operation(128, 64, 1024) == pytest.approx(reference * 28)


def test_winograd_serves_dense_three_by_three_convolutions_of_stride_one():
    def ms(spec):
        graph = build_arrays(spec).at_batch(64)
        return operator_ms(graph, DEVICE)[0] / graph.column("macs")[0]

    assert ms("conv/i56-c256-f256-k3-s1-same") < ms("conv/i56-c256-f256-k5-s1-same") / 1.7
    assert ms("conv/i57-c256-f256-k3-s2-valid") == pytest.approx(ms("conv/i60-c256-f256-k5-s2-valid"), rel=0.1)


def test_small_networks_wait_for_launches():
    graph = build_arrays("resnet18")
    tiny = to_arrays(OpGraph("t", [Node("r", "Relu", OpClass.ACTIVATION, output_bytes=4, flops=1)] * 100))
    assert BASELINES["refined-roofline"]().predict(tiny, DEVICE, 1, Phase.INFERENCE) == pytest.approx(0.5)
    assert BASELINES["refined-roofline"]().predict(graph, DEVICE, 1, Phase.INFERENCE) > graph_roofline_ms(graph, DEVICE)


@pytest.mark.parametrize(("name", "limit"), [("linear", 0.35), ("nearest-neighbour", 0.35), ("nnlp", 0.5)])
def test_a_batch_between_those_seen_is_predicted(name, limit, measured):
    rows, store = measured
    baseline = BASELINES[name]()
    baseline.epochs = 20
    baseline.fit(rows[rows["batch"] != 4], store)
    errors = [
        baseline.predict(store[row.graph_key].at_batch(4), get_device(row.device), 4, Phase(row.phase)) / row.latency_ms
        - 1
        for row in rows[rows["batch"] == 4].itertuples()
    ]
    assert np.abs(errors).mean() < limit


@pytest.mark.parametrize("name", ["linear", "nearest-neighbour"])
def test_a_device_without_rows_is_predicted_by_its_data_sheet(name, measured):
    rows, store = measured
    baseline = BASELINES[name]().fit(rows[rows["device"] == "1080ti"], store)
    row = rows[(rows["device"] == "v100-pcie") & (rows["batch"] == 16)].iloc[0]
    predicted = baseline.predict(store[row["graph_key"]].at_batch(16), get_device("v100-pcie"), 16, Phase.INFERENCE)
    assert predicted == pytest.approx(row["latency_ms"], rel=0.5)


@pytest.mark.parametrize("name", FITTED)
def test_phases_without_rows_are_refused(name, measured):
    rows, store = measured
    baseline = BASELINES[name]()
    baseline.epochs = 1
    baseline.fit(rows, store)
    with pytest.raises(DataError, match="backward"):
        baseline.predict(build_arrays("resnet18"), DEVICE, 1, Phase.BACKWARD)
    with pytest.raises(DataError, match="there are none"):
        BASELINES[name]().fit(rows[rows["model"] == "none of them"], store)


def test_nnlp_has_no_head_for_a_device_that_was_not_measured(measured):
    rows, store = measured
    baseline = BASELINES["nnlp"]()
    baseline.epochs = 1
    baseline.fit(rows, store)
    with pytest.raises(DataError, match="no head for inference on titan-x-pascal"):
        baseline.predict(build_arrays("resnet18"), get_device("titan-x-pascal"), 1, Phase.INFERENCE)


def test_the_operator_table_knows_its_search_space_and_nothing_else():
    rng, store, frames = np.random.default_rng(0), GraphStore(), []
    cells = ["".join(map(str, rng.integers(0, 5, 6))) for _ in range(24)]
    for cell in cells:
        graph = build_arrays(f"nasbench201/{cell}")
        rows = measurements(
            source="made", model=[f"nasbench201/{cell}"], device="1080ti", stack="pytorch", batch=[32],
            latency_ms=[0.5 + 0.02 * graph.num_nodes + 1e-9 * graph.column("macs").sum()], citation="made",
        )  # fmt: skip
        frames.append(rows.assign(graph_key=store.add(graph)))
    rows = concatenate(frames)
    table = BASELINES["operator-lookup"]().fit(rows.iloc[:21], store)
    for row in rows.iloc[21:].itertuples():
        predicted = table.predict(store[row.graph_key].at_batch(32), DEVICE, 32, Phase.INFERENCE)
        assert predicted == pytest.approx(row.latency_ms, rel=0.05)
    for graph, batch in ((build_arrays("resnet18").at_batch(32), 32), (store[rows["graph_key"].iloc[0]], 1)):
        with pytest.raises(DataError, match="no search space with this network"):
            table.predict(graph, DEVICE, batch, Phase.INFERENCE)
    with pytest.raises(DataError, match="networks of search spaces"):
        BASELINES["operator-lookup"]().fit(rows.assign(family="resnet"), store)
