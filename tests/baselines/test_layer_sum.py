"""The frame of the per-layer methods, around a model that is trivial."""

import numpy as np
import pytest

from gnnperf.baselines.layer_sum import LayerSumBaseline
from gnnperf.conditions import Phase
from gnnperf.datasets.graph_building import build_arrays
from gnnperf.datasets.schema import concatenate
from gnnperf.devices import get_device
from gnnperf.errors import DataError
from gnnperf.graph.arrays import to_arrays
from gnnperf.graph.opgraph import Node, OpClass, OpGraph

DEVICE = get_device("1080ti")


class ByTheOperation(LayerSumBaseline):
    """Every layer takes a ns an operation, three in a training step."""

    name = "by-the-operation"
    paper = ""

    def _fit_layers(self, layers, latency_ms):
        self.fitted = getattr(self, "fitted", 0) + len(layers)
        return lambda table: table.operations() * 1e-6 * np.where(table.optimizer > 0, 3, 1)


@pytest.fixture
def rows(layer_rows):
    specs = [f"conv/i{size}-c3-f8-k3-s1-same" for size in range(8, 28)] + [f"dense/c{n}-f10" for n in range(1, 21)]
    return lambda optimizer="none", source="here": layer_rows(specs, optimizer=optimizer, source=source)


def test_a_network_is_the_sum_of_the_layers_that_were_measured(rows):
    baseline = ByTheOperation("here").fit(rows(), None)
    vgg = build_arrays("vgg11").at_batch(2)
    # Poolings were not measured, so convolutions and dense layers alone count.
    assert baseline.predict(vgg, DEVICE, 2, Phase.INFERENCE) == pytest.approx(vgg.column("macs").sum() * 1e-6)
    assert baseline.predict(vgg, DEVICE, 2, Phase.FORWARD) == baseline.predict(vgg, DEVICE, 2, Phase.INFERENCE)


def test_backward_is_what_a_step_takes_beyond_forward(rows):
    baseline = ByTheOperation("here").fit(concatenate([rows(), rows("sgd")]), None)
    graph = build_arrays("lenet")
    forward, backward, step = (
        baseline.predict(graph, DEVICE, 1, phase) for phase in (Phase.FORWARD, Phase.BACKWARD, Phase.TRAINING)
    )
    assert step == pytest.approx(3 * forward) and backward == pytest.approx(2 * forward)


def test_what_the_layers_do_not_cover_is_refused(rows):
    baseline = ByTheOperation("here").fit(rows(), None)
    graph = build_arrays("lenet")
    with pytest.raises(DataError, match="forward passes alone"):
        baseline.predict(graph, DEVICE, 1, Phase.TRAINING)
    softmax = to_arrays(OpGraph("g", [Node("s", "Softmax", OpClass.SOFTMAX)]))
    with pytest.raises(DataError, match="none of the layers that by-the-operation knows: conv, dense"):
        baseline.predict(softmax, DEVICE, 1, Phase.INFERENCE)
    with pytest.raises(DataError, match="single layers of elsewhere"):
        ByTheOperation("elsewhere").fit(rows(), None)


def test_rows_of_other_sources_and_more_than_enough_rows_are_left_out(rows):
    baseline = ByTheOperation("here")
    baseline.most_rows = 15
    baseline.fit(concatenate([rows(), rows(source="elsewhere")]), None)
    assert baseline.fitted == 30


def test_single_layers_are_predicted_where_their_kind_is_known(rows, layer_rows):
    baseline = ByTheOperation("here").fit(rows(), None)
    test = layer_rows(["pool/i8-c4-k2-s2-valid-max", "dense/c1000-f1000"], batch=1)
    predicted = baseline.layer_latencies(test)
    assert np.isnan(predicted[0]) and predicted[1] == pytest.approx(1.0)
