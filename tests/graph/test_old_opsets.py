"""Operators as they were before opset 7, and those that went before onnx 1.5: shaped as they were meant."""

import pytest
from onnx import helper
from onnx_models import model, weight

from gnnperf.graph import read_graph

# operator -> opset, input shape, weights, attributes, output shape
OLD = {
    "Add": (6, [2, 3, 4], [weight("w", 3)], {"broadcast": 1, "axis": 1}, (2, 3, 4)),
    "Affine": (1, [2, 3], [], {"alpha": 1.0, "beta": 1.0}, (2, 3)),
    "AveragePool": (1, [1, 3, 8, 8], [], {"kernel_shape": [2, 2], "strides": [2, 2]}, (1, 3, 4, 4)),
    "Cast": (1, [2, 3], [], {"to": "FLOAT16"}, (2, 3)),
    "Clip": (1, [2, 3], [], {"min": 0.0, "max": 6.0}, (2, 3)),
    "Concat": (1, [2, 3], [weight("w", 2, 4)], {}, (2, 7)),
    "Crop": (1, [1, 3, 8, 8], [], {"border": [1, 2, 1, 2]}, (1, 3, 4, 6)),
    "Dropout": (1, [2, 3], [], {"is_test": 1}, (2, 3)),
    "Gemm": (6, [2, 3], [weight("w", 3, 4), weight("b", 4)], {"broadcast": 1}, (2, 4)),
    "ImageScaler": (1, [1, 3, 8, 8], [], {"bias": [0.0, 0.0, 0.0], "scale": 2.0}, (1, 3, 8, 8)),
    "Pad": (1, [1, 3, 8, 8], [], {"paddings": [0, 0, 1, 1, 0, 0, 2, 2]}, (1, 3, 11, 11)),
    "PRelu": (6, [1, 3, 8, 8], [weight("w", 3)], {}, (1, 3, 8, 8)),
    "Reshape": (1, [2, 12], [], {"shape": [0, 3, -1]}, (2, 3, 4)),
    "Slice": (1, [2, 8], [], {"axes": [1], "starts": [2], "ends": [5]}, (2, 3)),
    "Softmax": (1, [2, 3], [], {}, (2, 3)),
    "Split": (2, [2, 8], [], {"axis": 1, "split": [3, 5]}, (2, 3)),
    "Squeeze": (1, [2, 1, 3], [], {"axes": [1]}, (2, 3)),
    "TopK": (1, [2, 8], [], {"axis": 1, "k": 3}, (2, 3)),
    "Upsample": (1, [1, 3, 8, 8], [], {"height_scale": 2.0, "width_scale": 3.0}, (1, 3, 16, 24)),
}


@pytest.mark.parametrize("op_type", OLD)
def test_an_old_operator_is_shaped(op_type):
    opset, shape, weights, attributes, expected = OLD[op_type]
    outputs = ["y", "z"] if op_type in ("Split", "TopK") else ["y"]
    node = helper.make_node(op_type, ["x", *(tensor.name for tensor in weights)], outputs, **attributes)
    graph = read_graph(model([node], {"x": shape}, outputs, weights, opset))
    assert graph.outputs[0].shape == expected and all(node.resolved for node in graph.nodes)
    assert not graph.unknown_operators


def test_an_old_cast_to_the_type_that_is_there_costs_nothing():
    def cast(to):
        return model([helper.make_node("Cast", ["x"], ["y"], to=to)], {"x": [2, 3]}, ["y"], opset=1)

    assert read_graph(cast("FLOAT16")).nodes[0].dtype == "float16"
    assert [node.op_type for node in read_graph(cast("FLOAT")).nodes] == []


def test_batch_normalisation_of_opset_1():
    names = ["scale", "bias", "mean", "var"]
    node = helper.make_node("BatchNormalization", ["x", *names], ["y"], consumed_inputs=[0, 0, 0, 1, 1], is_test=1)
    graph = read_graph(model([node], {"x": [2, 3, 4, 4]}, ["y"], [weight(name, 3) for name in names], 1))
    assert graph.outputs[0].shape == (2, 3, 4, 4) and graph.parameters == 6
