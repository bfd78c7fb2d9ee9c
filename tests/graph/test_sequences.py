"""Sequences, optionals and operators whose output depends on data."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import INT64, ints, model, single, value

from gnnperf.graph import OpClass, read_graph

SHAPES = {"a": [2, 3], "b": [5, 3], "c": [2, 3]}


def scalar(name, number):
    return numpy_helper.from_array(np.int64(number), name)


def built(*nodes, output="y", initializers=()):
    construct = helper.make_node("SequenceConstruct", ["a", "b"], ["s"])
    return read_graph(model([construct, *nodes], SHAPES, [output], initializers))


@pytest.mark.parametrize(("position", "shape"), [(0, (2, 3)), (1, (5, 3)), (-1, (5, 3))])
def test_a_tensor_taken_from_a_sequence_has_its_own_shape(position, shape):
    node = helper.make_node("SequenceAt", ["s", "i"], ["y"])
    assert built(node, initializers=[scalar("i", position)]).outputs[0].shape == shape


def test_insertions_and_erasures_are_followed():
    nodes = [
        helper.make_node("SequenceInsert", ["s", "c", "zero"], ["s2"]),  # c a b
        helper.make_node("SequenceErase", ["s2"], ["s3"]),  # c a
        helper.make_node("SequenceInsert", ["s3", "b"], ["s4"]),  # c a b
        helper.make_node("ConcatFromSequence", ["s4"], ["y"], axis=0),
    ]
    graph = built(*nodes, initializers=[scalar("zero", 0)])
    assert graph.outputs[0].shape == (9, 3) and all(node.resolved for node in graph.nodes)
    assert graph.nodes[-1].op_class == OpClass.DATA_MOVEMENT and graph.nodes[-1].output_bytes == 27 * 4


@pytest.mark.parametrize(
    ("attributes", "split", "expected"),
    [({"axis": 0}, [2, 4], (6, 4)), ({"axis": 0}, 4, (6, 4)), ({"axis": 1, "keepdims": 0}, None, (4, 6))],
)
def test_split_and_join(attributes, split, expected):
    parts = [] if split is None else [numpy_helper.from_array(np.array(split, np.int64), "parts")]
    nodes = [
        helper.make_node("SplitToSequence", ["x", *(part.name for part in parts)], ["s"], **attributes),
        helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0, new_axis=int(split is None)),
    ]
    assert read_graph(model(nodes, {"x": [6, 4]}, ["y"], parts)).outputs[0].shape == expected


def test_the_length_of_a_sequence_is_shape_arithmetic():
    nodes = [
        helper.make_node("SequenceLength", ["s"], ["n"]),
        helper.make_node("Reshape", ["n", "one"], ["n1"]),
        helper.make_node("Expand", ["a", "n1"], ["h"]),
        helper.make_node("ConstantOfShape", ["n1"], ["z"]),
        helper.make_node("Add", ["z", "v"], ["y"]),
    ]
    construct = helper.make_node("SequenceConstruct", ["a", "b"], ["s"])
    graph = read_graph(model([construct, *nodes], {**SHAPES, "v": [1]}, ["y"], [ints("one", 1)]))
    assert [node.op_type for node in graph.nodes] == ["Add"] and graph.outputs[0].shape == (2,)


def test_a_map_over_a_sequence_runs_its_body_once_for_every_tensor():
    inner = helper.make_graph([helper.make_node("Relu", ["t"], ["u"])], "body", [value("t", None)], [value("u", None)])
    nodes = [
        helper.make_node("SequenceConstruct", ["a", "c", "a"], ["s"]),
        helper.make_node("SequenceMap", ["s"], ["m"], body=inner),
        helper.make_node("ConcatFromSequence", ["m"], ["y"], axis=0),
    ]
    graph = read_graph(model(nodes, SHAPES, ["y"]))
    assert [(n.repeats, n.flops) for n in graph.nodes if n.op_type == "Relu"] == [(3, 18)]
    assert graph.outputs[0].shape == (6, 3) and not graph.warnings


def test_a_map_over_a_sequence_from_outside_runs_once_and_says_so():
    tensors = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 3]))
    inner = helper.make_graph(
        [helper.make_node("Relu", ["t"], ["u"])], "body", [value("t", [2, 3])], [value("u", [2, 3])]
    )
    node = helper.make_node("SequenceMap", ["s"], ["y"], body=inner)
    graph = read_graph(model([node], [onnx.ValueInfoProto(name="s", type=tensors)], ["y"]))
    assert any("SequenceMap" in warning and "once is counted" in warning for warning in graph.warnings)


@pytest.mark.parametrize(("given", "taken"), [("a", "Exp"), ("", "Log")])
def test_whether_an_optional_is_there_is_known(given, taken):
    branches = {
        f"{name}_branch": helper.make_graph([helper.make_node(op, ["a"], ["q"])], name, [], [value("q", None)])
        for name, op in (("then", "Exp"), ("else", "Log"))
    }
    nodes = [
        helper.make_node("OptionalHasElement", [given], ["there"]),
        helper.make_node("If", ["there"], ["y"], **branches),
    ]
    graph = read_graph(model(nodes, SHAPES, ["y"], opset=18))
    assert [node.op_type for node in graph.nodes] == [taken] and not graph.warnings


LARGEST = {
    "NonZero": ({"x": [4, 5]}, [], {}, (2, 20)),
    "Compress": ({"x": [4, 5]}, [], {"axis": 1}, (4, 5)),
    "Unique": ({"x": [4, 5]}, [], {}, (20,)),
    "NonMaxSuppression": ({"boxes": [2, 100, 4], "scores": [2, 3, 100]}, [ints("most", 10)], {}, (2 * 3 * 10, 3)),
}


@pytest.mark.parametrize("op_type", LARGEST)
def test_what_depends_on_data_is_taken_at_its_largest_and_says_so(op_type):
    shapes, initializers, attributes, largest = LARGEST[op_type]
    source = single(op_type, shapes, initializers, **attributes)
    if op_type == "Compress":
        source.graph.input.append(value("keep", [5], TensorProto.BOOL))
        source.graph.node[0].input.append("keep")
    graph = read_graph(source)
    assert graph.outputs[0].shape == largest and graph.nodes[0].resolved
    assert any(op_type in warning and "most that it can find" in warning for warning in graph.warnings)


def test_an_input_whose_content_decides_shapes_is_named():
    source = model(
        [helper.make_node("Expand", ["x", "target"], ["y"])], [value("x", [1, 3]), value("target", [2], INT64)], ["y"]
    )
    graph = read_graph(source)
    assert not graph.nodes[0].resolved
    assert any("content of input 'target' decides" in warning for warning in graph.warnings)
