"""Layers from rows and from graphs: two ways to the same sizes."""

import numpy as np
import pytest

from gnnperf.baselines.layers import LAYER_FIELDS, LayerKind, LayerTable, rows_of_kind
from gnnperf.conditions import Optimizer
from gnnperf.datasets.graph_building import build_arrays
from gnnperf.devices import get_device
from gnnperf.graph.arrays import to_arrays
from gnnperf.graph.opgraph import Edge, Node, OpClass, OpGraph

DEVICE = get_device("1080ti")
SPECS = [
    "conv/i57-c24-f64-k3-s2-same-bias-relu",
    "conv/i56-c24-f64-k5-s1-valid",
    "conv/i30-c8-f16-k7-s3-same-relu",
    "dense/c512-f1000-relu",
    "dense/c100-f10",
    "pool/i56-c64-k3-s2-valid-max",
    "pool/i31-c64-k3-s2-same-max",
]


@pytest.mark.parametrize("spec", SPECS)
def test_a_measured_layer_and_its_graph_have_the_same_sizes(spec, layer_rows):
    kind = LayerKind(spec.split("/")[0])
    measured = LayerTable.of_rows(layer_rows([spec]), kind)
    (built,) = LayerTable.of_graph(build_arrays(spec).at_batch(4), DEVICE, Optimizer.NONE)
    assert built.kind == kind
    assert dict(zip(LAYER_FIELDS[kind], built.sizes[0], strict=True)) == pytest.approx(
        dict(zip(LAYER_FIELDS[kind], measured.sizes[0], strict=True))
    )
    assert np.array_equal(built.hardware, measured.hardware)


@pytest.mark.parametrize("spec", SPECS)
def test_work_is_that_of_the_operator_graph(spec, layer_rows):
    kind = LayerKind(spec.split("/")[0])
    table = LayerTable.of_rows(layer_rows([spec]), kind)
    graph = build_arrays(spec).at_batch(4)
    assert table.output_elements()[0] == graph.column("output_elements")[0]
    assert table.input_elements()[0] == graph.column("input_bytes")[0] / 4
    if kind != LayerKind.POOL:
        assert table.operations()[0] == graph.column("macs")[0]


def test_rows_are_told_apart_by_kind_and_keep_their_optimizer(layer_rows):
    rows = layer_rows(SPECS, optimizer=["none", "sgd", "adam", "none", "sgd", "none", "sgd"])
    assert [len(rows_of_kind(rows, kind)) for kind in LayerKind] == [3, 2, 2]
    table = LayerTable.of_rows(rows_of_kind(rows, LayerKind.CONV), LayerKind.CONV)
    assert [list(Optimizer)[number] for number in table.optimizer] == ["none", "sgd", "adam"]


def test_grouped_convolutions_keep_their_multiply_accumulates():
    graph = build_arrays("mobilenet_v2").at_batch(2)
    convolutions = next(t for t in LayerTable.of_graph(graph, DEVICE, Optimizer.NONE) if t.kind == LayerKind.CONV)
    chosen = np.isin(graph.op_class, [OpClass.CONV, OpClass.GROUPED_CONV, OpClass.DEPTHWISE_CONV])
    assert convolutions.operations() == pytest.approx(graph.column("macs")[chosen])
    assert np.array_equal(convolutions.position, np.flatnonzero(chosen))


def test_an_activation_counts_through_a_batch_normalisation_but_not_through_a_sum():
    def conv():
        return Node("c", "Conv", OpClass.CONV, macs=1, input_bytes=4, output_bytes=4, gemm=(1, 1, 1, 1), kernel=(1, 1),
                    stride=(1, 1), in_channels=1, out_channels=1, output_shape=(1, 1, 1, 1))  # fmt: skip

    nodes = [conv(), Node("b", "BN", OpClass.BATCH_NORM), Node("r", "Relu", OpClass.ACTIVATION), conv(),
             Node("a", "Add", OpClass.ELEMENTWISE), Node("r", "Relu", OpClass.ACTIVATION)]  # fmt: skip
    edges = [Edge(number, number + 1, 4, 4) for number in range(5)]
    (table,) = LayerTable.of_graph(to_arrays(OpGraph("g", nodes, edges)), DEVICE, Optimizer.NONE)
    assert table.column("activation").tolist() == [1, 0]


def test_no_rows_are_a_table_without_layers(layer_rows):
    empty = LayerTable.of_rows(layer_rows(SPECS).iloc[:0], LayerKind.CONV)
    assert len(empty) == 0 and empty.operations().shape == (0,)


def test_what_is_no_layer_is_left_out():
    graph = to_arrays(OpGraph("g", [Node("s", "Softmax", OpClass.SOFTMAX, output_bytes=4)]))
    assert LayerTable.of_graph(graph, DEVICE, Optimizer.NONE) == []
