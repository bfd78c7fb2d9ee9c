"""What costs nothing at run time is no operator, and edges lead around it."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import ints, model, value, weight

from gnnperf.graph import read_graph


def test_shape_arithmetic_folds():
    """x.view(x.size(0), x.size(1) * 4): what a tracer makes of it."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Gather", ["s", "one"], ["c"]),
        helper.make_node("Mul", ["c", "four"], ["c4"]),
        helper.make_node("Unsqueeze", ["n", "axes"], ["n1"]),
        helper.make_node("Unsqueeze", ["c4", "axes"], ["c1"]),
        helper.make_node("Concat", ["n1", "c1"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    scalars = [numpy_helper.from_array(np.int64(v), n) for n, v in (("zero", 0), ("one", 1), ("four", 4))]
    graph = read_graph(model(nodes, {"x": ["N", 3, 2, 2]}, ["y"], [*scalars, ints("axes", 0)]), batch=7)
    assert [node.op_type for node in graph.nodes] == ["Reshape"]
    assert graph.outputs[0].shape == (7, 12)


def test_identity_dropout_and_no_op_casts_vanish():
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("Dropout", ["b"], ["c", "mask"]),
        helper.make_node("Cast", ["c"], ["d"], to=TensorProto.FLOAT),
        helper.make_node("Sigmoid", ["d"], ["y"]),
    ]
    graph = read_graph(model(nodes, {"x": [2, 8]}, ["y"]))
    assert [node.op_type for node in graph.nodes] == ["Relu", "Sigmoid"]
    assert [(edge.source, edge.target, edge.tensor_bytes, edge.rank) for edge in graph.edges] == [(0, 1, 64, 2)]


def test_casts_of_activations_stay():
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT16)]
    graph = read_graph(model(nodes, {"x": [2, 8]}, ["y"]))
    assert graph.nodes[0].dtype == "float16" and graph.nodes[0].output_bytes == 32


def test_computed_weights_are_weights():
    """The light files of the ONNX model zoo fill their weights with ConstantOfShape."""
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["w"]),
        helper.make_node("Conv", ["x", "w"], ["y"]),
    ]
    graph = read_graph(model(nodes, {"x": [1, 3, 8, 8]}, ["y"], [ints("shape", 64, 3, 3, 3)]))
    assert len(graph.nodes) == 1 and graph.parameters == 64 * 27


def test_dead_operators_are_dropped():
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Exp", ["x"], ["unused"])]
    assert [node.op_type for node in read_graph(model(nodes, {"x": [2]}, ["y"])).nodes] == ["Relu"]


def test_random_operators_are_not_constant():
    nodes = [helper.make_node("RandomNormalLike", ["c"], ["r"]), helper.make_node("Add", ["x", "r"], ["y"])]
    graph = read_graph(model(nodes, {"x": [2, 3]}, ["y"], [weight("c", 2, 3)]))
    assert [node.op_type for node in graph.nodes] == ["RandomNormalLike", "Add"]


def test_a_graph_of_constants_is_empty_and_says_so():
    graph = read_graph(model([helper.make_node("Relu", ["w"], ["y"])], {}, ["y"], [weight("w", 2)]))
    assert graph.nodes == [] and graph.macs == 0 and "constants" in graph.warnings[0]


@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    [(0, 2, 1, (3, 4)), (-1, -(2**63) + 1, -1, (5, 4, 3)), (1, 2**63 - 1, 1, (4, 5))],
)
def test_slices_of_shapes(start, end, step, expected):
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Slice", ["s", "b", "e", "a", "t"], ["part"]),
        helper.make_node("ConstantOfShape", ["part"], ["zeros"]),
        helper.make_node("Expand", ["v", "part"], ["y"]),
    ]
    settings = [ints("b", start), ints("e", end), ints("a", 0), ints("t", step)]
    inputs = [value("x", [3, 4, 5]), value("v", [1])]
    assert read_graph(model(nodes, inputs, ["y"], settings)).outputs[0].shape == expected


def test_long_chains_need_no_recursion():
    count = 20_000
    nodes = [helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"]) for i in range(count)]
    graph = read_graph(model(nodes, {"t0": ["N", 4]}, [f"t{count}"]), batch=3)
    assert len(graph.nodes) == count and len(graph.edges) == count - 1
    assert graph.flops == count * 12
