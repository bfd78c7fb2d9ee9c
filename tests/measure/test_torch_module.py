"""The interpreter computes what onnxruntime computes."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper

from gnnperf.errors import MeasureError
from gnnperf.measure.models import Network, RunnableModel
from gnnperf.measure.torch_module import OnnxModule

NETWORKS = [
    "lenet5", "lenet_caffe", "resnet18@32", "densenet121@32", "squeezenet1_0@66", "googlenet@75",
    "inception_bn@70", "mobilenet_v2@32", "mobilenet_v3_small@32", "shufflenet_v2_x0_5@32", "mnasnet0_5@32",
    "efficientnet_b0@32", "nasbench201/012340", "nasbench201/434210",
    "bert?layers=2&hidden=64&heads=4&seq=16&vocab=100", "gpt2?layers=2&hidden=64&heads=4&seq=16&vocab=100",
    "opt?layers=2&hidden=64&heads=4&seq=16&vocab=100", "conv/i57-c8-f16-k4-s3-same-g2-bias-tanh",
    "dense/c32-f10-bias-sigmoid", "pool/i57-c8-k4-s3-same-average", "pool/i57-c8-k4-s3-valid-max",
]  # fmt: skip


def assert_agrees(model: RunnableModel):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.proto.SerializeToString(), options)
    inputs = model.random_inputs()
    expected = session.run(None, inputs)
    module = OnnxModule(model.proto).eval()
    with torch.inference_mode():
        found = module(*(torch.from_numpy(array) for array in inputs.values()))
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape
        scale = np.abs(theirs).max()
        assert np.isfinite(scale) and scale > 0
        np.testing.assert_allclose(ours.numpy() / scale, theirs / scale, atol=2e-4)


@pytest.mark.parametrize("name", NETWORKS)
def test_agrees_with_onnxruntime(name):
    assert_agrees(Network(name).load(batch=2))


def make_model(nodes, inputs, initializers=(), outputs=("y",)) -> RunnableModel:
    graph = helper.make_graph(
        nodes, "made",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in dict(initializers).items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for output, info in zip(model.graph.output, onnx.shape_inference.infer_shapes(model).graph.output, strict=True):
        output.CopyFrom(info)
    return RunnableModel("made", model)


def node(op_type, inputs, outputs=("y",), **attributes):
    return helper.make_node(op_type, inputs, list(outputs), **attributes)


INTS = {name: np.array(value, np.int64) for name, value in {
    "shape": [0, 6, -1], "one": [1], "two": [2], "last": [-1], "half": [1, 2], "pads": [0, 0, 1, 2, 0, 0, 0, 1],
    "none": [], "picks": [[1, -1]],
}.items()}  # fmt: skip
SINGLE = {
    "uneven pads": ([node("Conv", ["x", "w"], pads=[1, 0, 2, 1], strides=[2, 2])], [2, 3, 9, 8]),
    "same pads": ([node("MaxPool", ["x"], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER")], [2, 3, 8, 8]),
    "average without padding": (
        [node("AveragePool", ["x"], kernel_shape=[3, 3], pads=[1, 0, 0, 1], strides=[2, 2])], [2, 3, 8, 8]
    ),
    "transposed": ([node("ConvTranspose", ["x", "v"], strides=[2, 2], pads=[1, 1, 1, 1])], [2, 3, 5, 5]),
    "response": ([node("LRN", ["x"], size=5)], [2, 7, 4, 4]),
    "reshape": ([node("Reshape", ["x", "shape"])], [2, 3, 4, 4]),
    "slice": ([node("Slice", ["x", "one", "last", "two"])], [2, 3, 5, 4]),
    "pad": ([node("Pad", ["x", "pads"])], [2, 3, 4, 4]),
    "reduce": ([node("ReduceMean", ["x"], axes=[1, -1], keepdims=0)], [2, 3, 4]),
    "gather": ([node("Gather", ["x", "picks"], axis=1)], [2, 3, 4]),
    "unsqueeze": ([node("Unsqueeze", ["x", "half"])], [3, 4]),
    "instance norm": ([node("InstanceNormalization", ["x", "s", "s"])], [2, 3, 4, 4]),
    "group softmax": ([node("Softmax", ["x"], axis=1)], [2, 3, 4]),
    "resize": ([node("Resize", ["x", "", "sizes"], mode="nearest", nearest_mode="floor",
                     coordinate_transformation_mode="asymmetric")], [1, 2, 3, 3]),
    "clip": ([node("Clip", ["x", "", "limit"])], [2, 4]),
    "two outputs": ([node("Split", ["x"], ["y", "z"], axis=1)], [2, 4, 3]),
}  # fmt: skip


@pytest.mark.parametrize("case", SINGLE)
def test_operators_agree_with_onnxruntime(case):
    nodes, shape = SINGLE[case]
    generator = np.random.default_rng(0)
    weights = {
        "w": generator.standard_normal((4, 3, 3, 3)).astype(np.float32), "s": np.array([1, 2, 3], np.float32),
        "v": generator.standard_normal((3, 4, 3, 3)).astype(np.float32), "sizes": np.array([1, 1, 2, 2], np.float32),
        "limit": np.float32(0.5),
        **INTS,
    }  # fmt: skip
    used = {name: weights[name] for item in nodes for name in item.input if name in weights}
    assert_agrees(make_model(nodes, {"x": shape}, used, nodes[-1].output))


def test_weights_are_parameters_and_statistics_are_not():
    module = OnnxModule(Network("resnet18@32").load(batch=2).proto)
    assert sum(parameter.numel() for parameter in module.parameters()) == 11_689_512
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    module.train()(torch.randn(2, 3, 32, 32))[0].sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())
    changed = [name for name, buffer in module.named_buffers() if not torch.equal(buffer, before[name])]
    assert len(changed) == 2 * 20  # mean and variance of every batch normalisation


def test_old_opsets_are_refused():
    model = make_model([node("Relu", ["x"])], {"x": [2, 3]})
    model.proto.opset_import[0].version = 6
    with pytest.raises(MeasureError, match="opset 7 and later, not 6"):
        OnnxModule(model.proto)


def test_unknown_operators_are_named_in_one_line():
    model = make_model([node("Relu", ["x"], ["a"]), node("Hardmax", ["a"])], {"x": [2, 3]})
    with pytest.raises(MeasureError, match=r"^the torch backend cannot run Hardmax: .*onnxruntime$"):
        OnnxModule(model.proto)
