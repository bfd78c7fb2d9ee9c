"""What the builder says of shapes is what onnxruntime computes."""

import numpy as np
import onnx
import onnxruntime
import pytest

from gnnperf import zoo

RUNNABLE = [
    "lenet", "lenet5", "lenet_caffe", "lenet_paddle", "resnet18@64", "preact_resnet50@64", "resnext50_32x4d@64",
    "densenet121@64", "squeezenet1_0@66", "squeezenet1_1@64", "googlenet@75", "inception_bn@70", "inception_v3@107",
    "mobilenet_v1@64", "mobilenet_v2@64", "mobilenet_v3_small@64", "mnasnet0_5@64", "shufflenet_v2_x0_5@64",
    "efficientnet_b0@64", "nasbench201/012340", "nasbench201/434210",
    "fbnet/0-3-8-1-7-4-8-8-2-6-1-4-7-3-2-7-3-2-4-2-4-8", "ofa/r128-d22334-k35735735735735735735-e34634634634634634634",
    "bert?layers=2&hidden=64&heads=4&seq=16&vocab=100", "bert?layers=2&hidden=64&heads=4&seq=16&vocab=100&head=lm",
    "gpt2?layers=2&hidden=64&heads=4&seq=16&vocab=100", "opt?layers=2&hidden=64&heads=4&seq=16&vocab=100",
    "conv/i57-c8-f16-k4-s3-same-g2-bias-tanh", "conv/i57-c8-f16-k4-s3-valid-relu6", "dense/c32-f10-bias-sigmoid",
    "pool/i57-c8-k4-s3-same-average", "pool/i57-c8-k4-s3-valid-max",
]  # fmt: skip


def run(model: onnx.ModelProto, batch: int, outputs: list[str] | None = None) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    generator, feeds = np.random.default_rng(0), {}
    for value in session.get_inputs():
        shape = [batch if isinstance(dim, str) else dim for dim in value.shape]
        is_float = "float" in value.type
        feeds[value.name] = generator.standard_normal(shape, np.float32) if is_float else np.ones(shape, np.int64)
    return session.run(outputs, feeds)


@pytest.mark.parametrize("spec", RUNNABLE)
@pytest.mark.parametrize("batch", [2, "N"])
def test_every_intermediate_shape(spec, batch):
    builder, output = zoo._grow(spec, batch, None, None)
    model = zoo.fill_weights(builder.finish(output))
    onnx.checker.check_model(model, full_check=True)

    inputs = {value.name for value in model.graph.input}
    tensors = [tensor for name, tensor in builder.tensors.items() if name not in inputs]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=tensor.name) for tensor in tensors)
    values = run(model, 2, [tensor.name for tensor in tensors])
    for tensor, value in zip(tensors, values, strict=True):
        # Merged tokens are named "N*16".
        stated = [
            int(dim.replace("N", "1").split("*")[-1]) * 2 if isinstance(dim, str) else dim for dim in tensor.shape
        ]
        assert list(value.shape) == stated, tensor.name
        assert value.dtype == tensor.dtype, tensor.name
        assert value.dtype.kind != "f" or np.isfinite(value).all(), tensor.name


@pytest.mark.parametrize("spec", ["resnet18", "vgg16_bn", "caffe_alexnet", "bert_large", "efficientnet_b7"])
def test_files_carry_no_weights(spec):
    model = zoo.build(spec, "N")
    weights = [t for t in model.graph.initializer if not t.name.startswith("constant_")]
    assert weights and not any(t.raw_data or t.external_data for t in weights)
    assert model.ByteSize() < 200_000


def test_random_weights_are_seeded():
    first, again, other = (
        zoo.fill_weights(zoo.build("lenet"), seed).SerializeToString() for seed in (1, 1, 2)
    )  # fmt: skip
    assert first == again != other


def test_nasbench201_none_edges_contribute_nothing():
    # Node 3 sums none(0), none(1) and skip(2), node 2 sums skip(0) and none(1): every cell is the identity.
    model = zoo.fill_weights(zoo.build("nasbench201/310001"))
    identity = zoo.fill_weights(zoo.build("nasbench201/010001"))
    del model.graph.output[:], identity.graph.output[:]
    for candidate in (model, identity):
        # The first reduction block reads what the last cell of the first stage gives.
        pool = next(node for node in candidate.graph.node if node.op_type == "AveragePool")
        candidate.graph.output.extend([onnx.ValueInfoProto(name=pool.input[0]), onnx.ValueInfoProto(name="bn_0.out")])
    after, stem = run(identity, 1)
    np.testing.assert_array_equal(after, stem)


def test_same_padding_is_tensorflows():
    # TensorFlow puts the odd pixel behind: 5 pixels, kernel 2, stride 2 give 3 outputs and pads (0, 1).
    model = zoo.build("conv/i5-c1-f1-k2-s2-same")
    pads = next(a.ints for a in model.graph.node[0].attribute if a.name == "pads")
    assert list(pads) == [0, 0, 1, 1]
    assert [d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim] == [1, 1, 3, 3]


def test_graphs_are_built_in_milliseconds():
    import time

    start = time.perf_counter()
    for index in range(20):
        zoo.build(f"nasbench201/{index % 5}3{index % 4}421", "N")
    assert (time.perf_counter() - start) / 20 < 0.02  # 2 ms on an idle core
