"""Which sizes free dimensions take, and what is said about it."""

import pytest
from onnx import TensorProto, helper
from onnx_models import INT64, ints, model, single, value, weight

from gnnperf.errors import ModelFileError
from gnnperf.graph import read_graph
from gnnperf.graph.dims import DEFAULT_DIMS, bind_dims


def relu(*shape):
    return single("Relu", {"x": shape})


@pytest.mark.parametrize(
    ("shape", "bound"),
    [
        (["N", 3, "height", "width"], (1, 3, 224, 224)),
        ([None, 3, None, None], (1, 3, 224, 224)),
        (["unk__1", "unk__2", "unk__3", 3], (1, 224, 224, 3)),
        (["batch", "sequence", 768], (1, 128, 768)),
        (["batch", 80, "frames"], (1, 80, 128)),
        (["seq_len", "batch", 64], (128, 1, 64)),
        ([None, 1, None], (1, 1, 16000)),
        (["batch", "samples"], (1, 16000)),
    ],
)
def test_defaults(shape, bound):
    graph = read_graph(relu(*shape))
    assert graph.inputs[0].shape == bound
    assert len(graph.assumptions) == sum(not isinstance(dim, int) for dim in shape)


def test_tokens_are_a_sequence():
    source = model([helper.make_node("Cast", ["ids"], ["y"], to=1)], [value("ids", [None, None], INT64)], ["y"])
    graph = read_graph(source)
    assert graph.inputs[0].shape == (1, DEFAULT_DIMS["sequence"])
    assert graph.assumptions == {"ids[0]": 1, "ids[1]": 128}
    assert "ids[1] = 128" in graph.warnings[0] and "ids[0]" not in graph.warnings[0]


def test_what_is_given_is_no_assumption():
    graph = read_graph(relu("N", 3, "height", "width"), batch=4, dims={"height": 320}, input_shapes=None)
    assert graph.inputs[0].shape == (4, 3, 320, 224) and graph.batch == 4
    assert graph.assumptions == {"width": 224}


def test_unnamed_dimension_by_position():
    assert read_graph(relu(None, 3, None, 32), dims={"x[2]": 48}).inputs[0].shape == (1, 3, 48, 32)


def test_input_shape_sets_the_batch_and_other_inputs_follow():
    source = single("Add", {"a": ["N", 8], "b": ["N", 8]})
    graph = read_graph(source, input_shapes={"a": (6, 8)})
    assert graph.batch == 6 and [tensor.shape for tensor in graph.inputs] == [(6, 8), (6, 8)]


def test_fixed_dimensions_can_be_overridden():
    graph = read_graph(relu(1, 3, 224, 224), input_shapes={"x": (1, 3, 64, 64)})
    assert graph.outputs[0].shape == (1, 3, 64, 64)


def test_recurrent_state_carries_the_batch_in_the_middle():
    source = model(
        [helper.make_node("Identity", ["state"], ["s"]), helper.make_node("Relu", ["x"], ["y"])],
        {"x": [None, 16], "state": [2, None, 128]},
        ["y", "s"],
    )
    assert [tensor.shape for tensor in read_graph(source, batch=5).inputs] == [(5, 16), (2, 5, 128)]


def test_sums_of_dimensions():
    source = single("Add", {"mask": ["batch", "past + seq"], "x": ["batch", "seq"], "cache": ["batch", "past"]})
    bound = bind_dims(source.graph, 2, {"seq": 10})
    assert bound.shapes["mask"] == (2, 138)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch": 0}, "batch size"),
        ({"batch": -3}, "batch size"),
        ({"dims": {"height": 0}}, "height"),
        ({"dims": {"depth": 5}}, "no free dimension 'depth'"),
        ({"input_shapes": {"y": (1,)}}, "no input 'y'"),
        ({"input_shapes": {"x": (1, 3)}}, "4 dimensions"),
        ({"input_shapes": {"x": (1, 3, 0, 4)}}, "between 1 and"),
        ({"batch": 2, "input_shapes": {"x": (1, 3, 8, 8)}}, "two batch sizes"),
        ({"dims": {"height": 9}, "input_shapes": {"x": (1, 3, 8, 8)}}, "two sizes .* 'height': 9 and 8"),
        ({"batch": 2**31 - 1, "dims": {"height": 2**31 - 1}}, "smaller dimensions"),
        ({"batch": 10**30}, "batch size"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ModelFileError, match=message):
        read_graph(relu("N", 3, "height", "width"), **arguments)


def test_absurd_inner_tensors_are_refused():
    source = single("Tile", {"x": [1, 1000]}, [ints("repeats", 2**40, 2**20)])
    with pytest.raises(ModelFileError):
        read_graph(source)


def test_quantities_do_not_overflow():
    huge = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**17, 2**17])  # sizes only, no content
    source = single("MatMul", {"x": ["N", 2**17]}, [huge])
    assert read_graph(source, batch=2**27).macs == 2**61 and read_graph(source, batch=2**27).flops == 2**62


def test_streaming_audio_falls_back_to_a_chunk():
    """A network that only accepts 512 samples: its products do not fit any other length."""
    nodes = [
        helper.make_node("Reshape", ["audio", "shape"], ["h"]),
        helper.make_node("MatMul", ["h", "w"], ["y"]),
    ]
    source = model(nodes, {"audio": ["batch", "n_samples"]}, ["y"], [ints("shape", -1, 1, 512), weight("w", 512, 4)])
    assert read_graph(source).assumptions["n_samples"] == 512
