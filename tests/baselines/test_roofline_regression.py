import numpy as np
import pytest

from gnnperf.baselines.roofline_regression import RooflineRegression
from gnnperf.conditions import Precision
from gnnperf.devices import get_device
from gnnperf.devices.roofline import graph_roofline_ms
from gnnperf.errors import DataError
from gnnperf.graph.arrays import to_arrays
from gnnperf.graph.opgraph import Node, OpClass, OpGraph

DEVICE = get_device("1080ti")


@pytest.fixture
def graphs():
    rng = np.random.default_rng(0)
    graphs = []
    for _ in range(50):
        nodes = [Node("v", "Reshape", OpClass.VIEW, input_bytes=10**8)]
        for _ in range(rng.integers(1, 10)):
            flops, size = int(rng.integers(10**9, 10**10)), int(rng.integers(10**6, 10**7))
            nodes.append(Node("c", "Conv", OpClass.CONV, flops // 2, flops, size, size))
            nodes.append(Node("r", "Relu", OpClass.ACTIVATION, 0, size, size, size))
        graphs.append(to_arrays(OpGraph("g", nodes)))
    return graphs


@pytest.mark.parametrize("precision", Precision)
def test_unfitted_it_is_the_roofline(graphs, precision):
    expected = [graph_roofline_ms(graph, DEVICE, precision) for graph in graphs]
    assert RooflineRegression(DEVICE, precision).predict(graphs) == pytest.approx(expected)


def test_fit_finds_the_shares_of_the_peaks_and_the_launch_cost(graphs):
    truth = RooflineRegression(DEVICE)
    truth.coefficients = np.array([1 / 0.75, 1 / 0.6, 0.012])
    model = RooflineRegression(DEVICE).fit(graphs[:40], truth.predict(graphs[:40]))
    assert model.coefficients == pytest.approx(truth.coefficients, rel=1e-6)
    assert model.predict(graphs[40:]) == pytest.approx(truth.predict(graphs[40:]))


def test_bad_latencies_are_refused(graphs):
    with pytest.raises(DataError, match=r"latency -1\.0 of graph 0"):
        RooflineRegression(DEVICE).fit(graphs[:1], np.array([-1.0]))
