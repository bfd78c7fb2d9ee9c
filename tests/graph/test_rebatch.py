"""A batch that the file fixes is changed where the network allows it."""

import pytest
from onnx import helper
from onnx_models import ints, model, single, weight

from gnnperf.graph import read_graph


def classifier(*target: int):
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["h"]),
        helper.make_node("Reshape", ["h", "shape"], ["f"]),
        helper.make_node("Gemm", ["f", "v"], ["y"]),
    ]
    weights = [weight("w", 4, 3, 1, 1), ints("shape", *target), weight("v", 64, 10)]
    return model(nodes, {"x": [1, 3, 4, 4]}, ["y"], weights)


@pytest.mark.parametrize("target", [(1, 64), (1, -1), (-1, 64), (0, -1)])
def test_reshape_constants_follow_the_batch(target):
    own, other = read_graph(classifier(*target)), read_graph(classifier(*target), batch=8)
    assert other.batch == 8 and other.outputs[0].shape == (8, 10) and not other.warnings
    assert other.macs == 8 * own.macs and other.parameters == own.parameters
    assert other.nodes[2].gemm == (8, 10, 64, 1)


@pytest.mark.parametrize("target", [(6, 5, 4), (6, -1, 4), (2, 3, 5, 4), (5, 2, 12)])
def test_batch_times_heads_follows_too(target):
    """Attention folds the heads into the batch; a time-major network has the batch second."""
    nodes = [helper.make_node("Reshape", ["x", "s"], ["h"]), helper.make_node("Reshape", ["h", "back"], ["y"])]
    graph = read_graph(model(nodes, {"x": [2, 5, 12]}, ["y"], [ints("s", *target), ints("back", 2, 5, 12)]), batch=8)
    assert graph.batch == 8 and graph.outputs[0].shape == (8, 5, 12)
    assert sum(graph.nodes[0].output_shape) > sum(size for size in target if size > 0)


def test_the_files_own_batch_is_the_default():
    graph = read_graph(single("Relu", {"x": [4, 3]}))
    assert graph.batch == 4 and graph.assumptions == {}


def test_class_token_grows_with_the_batch():
    nodes = [helper.make_node("Concat", ["token", "x"], ["h"], axis=1), helper.make_node("MatMul", ["h", "w"], ["y"])]
    source = model(nodes, {"x": [1, 9, 8]}, ["y"], [weight("token", 1, 1, 8), weight("w", 8, 8)])
    assert read_graph(source, batch=4).outputs[0].shape == (4, 10, 8)


def test_what_does_not_follow_keeps_its_batch():
    source = single("Mul", {"x": [3, 2]}, [weight("w", 3, 2)])
    graph = read_graph(source, batch=16)
    assert graph.batch == 3 and graph.inputs[0].shape == (3, 2)
    assert "batch 3 is used instead of 16" in graph.warnings[0]
