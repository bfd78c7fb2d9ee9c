"""Shapes that no framework would run get a figure with a warning that names the operator."""

import pytest
from onnx import TensorProto, helper

from gnnperf.graph import read_graph


def convolution(channels, size, kernel=3, groups=1):
    image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, size, size])
    weight = helper.make_tensor_value_info("w", TensorProto.FLOAT, [8, 4 // groups, kernel, kernel])
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="first", group=groups)
    graph = helper.make_graph([node], "g", [image, weight], [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


@pytest.mark.parametrize(
    ("shapes", "complaint"),
    [
        ({"channels": 3, "size": 8}, "Conv 'first' cannot run: its input has 3 channels, its weights are for 4"),
        ({"channels": 4, "size": 2}, "Conv 'first' cannot run: its kernel is larger than its input of 1x4x2x2"),
    ],
)
def test_an_operator_that_cannot_run_is_named(shapes, complaint):
    warnings = read_graph(convolution(**shapes)).warnings
    assert any(complaint in warning for warning in warnings), warnings


@pytest.mark.parametrize("groups", [1, 2])
def test_what_can_run_has_no_such_warning(groups):
    assert not read_graph(convolution(4, 8, groups=groups)).warnings
