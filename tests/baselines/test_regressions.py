import numpy as np
import pytest

from gnnperf.baselines.least_squares import nonnegative_coefficients
from gnnperf.baselines.operator_counts import OperatorCountRegression
from gnnperf.baselines.work_regression import WorkRegression
from gnnperf.errors import DataError
from gnnperf.graph.arrays import GraphArrays, to_arrays
from gnnperf.graph.opgraph import Node, OpClass, OpGraph

CHANNELS = (16, 32, 64, 128)


def chain(rng: np.random.Generator, length: int) -> GraphArrays:
    """Convolutions of random widths, each with an activation, and a view that costs nothing."""
    nodes = [Node("view", "Reshape", OpClass.VIEW, input_bytes=10**9, output_bytes=10**9)]
    for channels in rng.choice(CHANNELS, length):
        size = int(channels) * 1024
        macs = 9 * size * int(channels)
        nodes.append(Node("c", "Conv", OpClass.CONV, macs, 2 * macs, 4 * size, 4 * size, 36 * int(channels) ** 2))
        nodes.append(Node("r", "Relu", OpClass.ACTIVATION, 0, size, 4 * size, 4 * size))
    return to_arrays(OpGraph("chain", nodes))


def physical_ms(graph: GraphArrays) -> float:
    """A latency that WorkRegression can express: 5 TFLOP/s, 250 GB/s, 10 us an operator, 0.1 ms a graph."""
    runs = graph.op_class != OpClass.VIEW
    moved = sum(graph.column(name)[runs].sum() for name in ("input_bytes", "output_bytes", "weight_bytes"))
    return graph.column("macs").sum() / 2.5e9 + moved / 250e6 + 0.010 * runs.sum() + 0.1


@pytest.fixture
def graphs():
    rng = np.random.default_rng(0)
    return [chain(rng, int(length)) for length in rng.integers(1, 30, 200)]


def test_linear_recovers_a_linear_device_and_extrapolates(graphs):
    latency_ms = np.array([physical_ms(graph) for graph in graphs])
    model = WorkRegression().fit(graphs[:150], latency_ms[:150])
    assert model.predict(graphs[150:]) == pytest.approx(latency_ms[150:], rel=1e-4)
    assert model.coefficients[0] == pytest.approx(1 / 2.5e9, rel=1e-3)
    assert model.coefficients[1] == pytest.approx(1 / 250e6, rel=1e-3)
    large = chain(np.random.default_rng(1), 500)
    assert model.predict([large])[0] == pytest.approx(physical_ms(large), rel=1e-3)


def test_linear_coefficients_are_never_negative(graphs):
    noise = np.random.default_rng(2).lognormal(0, 0.5, len(graphs))
    model = WorkRegression().fit(graphs, noise * np.array([physical_ms(graph) for graph in graphs]))
    assert (model.coefficients >= 0).all()
    assert (model.predict(graphs) > 0).all()
    assert model.coefficients[3 + OpClass.SOFTMAX] == 0  # a class that no graph has


def test_the_fit_is_on_the_relative_error():
    # One coefficient, targets 1 and 100 for the same work: least squares on the error would say 50.5.
    coefficient = nonnegative_coefficients(np.ones((2, 1)), np.array([1.0, 100.0]))
    assert coefficient[0] == pytest.approx(1.01 / 1.0001)


def test_operator_counts_learn_a_table_of_latencies(graphs):
    # Anything but linear in the work: only a table of operators can express it.
    table = {16: 0.9, 32: 0.1, 64: 0.5, 128: 0.2}

    def latency(graph):
        outputs = graph.column("output_bytes")[graph.op_class == OpClass.CONV] / 4096
        return 0.3 + sum(table[int(channels)] + 0.01 for channels in outputs)

    latency_ms = np.array([latency(graph) for graph in graphs])
    fitted, held_out = graphs[:150], graphs[150:]
    counts = OperatorCountRegression(alpha=1e-10).fit(fitted, latency_ms[:150])
    assert counts.predict(held_out) == pytest.approx(latency_ms[150:], rel=1e-3)
    linear = WorkRegression().fit(fitted, latency_ms[:150]).predict(held_out)
    assert np.abs(linear / latency_ms[150:] - 1).mean() > 0.1


def test_operators_never_seen_count_as_nothing_and_latencies_stay_positive(graphs):
    latency_ms = np.array([physical_ms(graph) for graph in graphs])
    model = OperatorCountRegression().fit(graphs, latency_ms)
    strange = to_arrays(OpGraph("s", [Node("x", "Softmax", OpClass.SOFTMAX, output_bytes=4)]))
    empty = to_arrays(OpGraph("e"))
    assert model.predict([strange])[0] == model.predict([empty])[0] > 0
    # The same operators at another batch are others.
    assert model.predict([graphs[0].at_batch(3)])[0] == model.predict([empty])[0]


@pytest.mark.parametrize("model", [WorkRegression, OperatorCountRegression])
@pytest.mark.parametrize(
    ("latency_ms", "complaint"),
    [
        ([1.0], "2 graphs and latencies of shape"),
        ([[1.0], [2.0]], r"shape \(2, 1\)"),
        ([1.0, 0.0], "latency 0.0 of graph 1"),
        ([np.nan, 1.0], "latency nan of graph 0"),
        ([1.0, np.inf], "latency inf of graph 1"),
    ],
)
def test_bad_latencies_are_refused(model, latency_ms, complaint, graphs):
    with pytest.raises(DataError, match=complaint):
        model().fit(graphs[:2], np.array(latency_ms))
    with pytest.raises(DataError, match="0 graphs"):
        model().fit([], np.array([]))
