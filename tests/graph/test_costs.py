"""Costs of single operators, worked out by hand."""

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import INT64, ints, model, single, value, weight

from gnnperf.graph import OpClass, read_graph
from gnnperf.graph.costs.describe import CLASSES


def node_of(source, **arguments):
    graph = read_graph(source, **arguments)
    assert len(graph.nodes) == 1
    return graph.nodes[0]


def test_convolution():
    source = single("Conv", {"x": ["N", 8, 10, 12]}, [weight("w", 16, 8, 3, 5), weight("b", 16)], pads=[1, 2, 1, 2])
    node = node_of(source, batch=2)
    assert node.op_class == OpClass.CONV and node.output_shape == (2, 16, 10, 12)
    assert node.gemm == (2 * 120, 16, 8 * 15, 1) and node.macs == 2 * 120 * 16 * 120
    assert node.flops == 2 * node.macs + 2 * 16 * 120
    assert node.input_bytes == 2 * 8 * 120 * 4 and node.output_bytes == 2 * 16 * 120 * 4
    assert node.parameters == 16 * 120 + 16 and node.weight_bytes == 4 * node.parameters
    assert (node.kernel, node.stride, node.dilation) == ((3, 5), (1, 1), (1, 1))
    assert (node.in_channels, node.out_channels, node.groups) == (8, 16, 1)


@pytest.mark.parametrize(
    ("groups", "op_class"), [(1, OpClass.CONV), (4, OpClass.GROUPED_CONV), (8, OpClass.DEPTHWISE_CONV)]
)
def test_groups(groups, op_class):
    node = node_of(single("Conv", {"x": [1, 8, 6, 6]}, [weight("w", 8, 8 // groups, 1, 1)], group=groups))
    assert node.op_class == op_class and node.gemm == (36, 8 // groups, 8 // groups, groups)
    assert node.macs == 36 * 8 * 8 // groups == np.prod(node.gemm)


def test_transposed_convolution():
    node = node_of(single("ConvTranspose", {"x": [1, 6, 4, 4]}, [weight("w", 6, 5, 2, 2)], strides=[2, 2]))
    assert node.op_class == OpClass.CONV_TRANSPOSE and node.output_shape == (1, 5, 8, 8)
    assert node.macs == 16 * 6 * 5 * 4 == np.prod(node.gemm)


def test_gemm_and_matmul_with_a_weight():
    gemm = node_of(single("Gemm", {"x": [4, 32]}, [weight("w", 10, 32), weight("b", 10)], transB=1))
    assert gemm.op_class == OpClass.GEMM and gemm.gemm == (4, 10, 32, 1)
    assert gemm.flops == 2 * 4 * 10 * 32 + 40 and gemm.parameters == 330
    matmul = node_of(single("MatMul", {"x": [2, 5, 32]}, [weight("w", 32, 10)]))
    assert matmul.op_class == OpClass.GEMM and matmul.gemm == (10, 10, 32, 1) and matmul.weight_bytes == 1280


def test_weight_on_the_left():
    node = node_of(single("MatMul", {"x": [2, 32, 7]}, [weight("w", 10, 32)], inputs=["w", "x"]))
    assert node.op_class == OpClass.GEMM and node.gemm == (14, 10, 32, 1) and node.macs == 2 * 10 * 32 * 7


def test_product_of_activations():
    node = node_of(single("MatMul", {"a": [2, 1, 5, 32], "b": [3, 32, 7]}))
    assert node.op_class == OpClass.MATMUL and node.gemm == (5, 7, 32, 6) and node.weight_bytes == 0


def test_weight_behind_a_transpose_and_dequantisation():
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "scale"], ["wf"]),
        helper.make_node("Transpose", ["wf"], ["wt"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "wt"], ["y"]),
    ]
    scale = onnx.numpy_helper.from_array(np.float32(0.1), "scale")
    node = node_of(model(nodes, {"x": [3, 32]}, ["y"], [weight("w", 10, 32, dtype=np.int8), scale]))
    assert node.op_class == OpClass.GEMM and node.macs == 960
    assert node.weight_bytes == 320 and node.parameters == 320  # read as it is stored, one byte each


@pytest.mark.parametrize(
    ("equation", "shapes", "gemm"),
    [
        ("bij,bjk->bik", ([2, 3, 4], [2, 4, 5]), (3, 5, 4, 2)),
        ("bhqd,bhkd->bhqk", ([2, 8, 16, 64], [2, 8, 20, 64]), (16, 20, 64, 16)),
        ("...ij,...jk", ([7, 3, 4], [7, 4, 5]), (3, 5, 4, 7)),
    ],
)
def test_einsum(equation, shapes, gemm):
    node = node_of(single("Einsum", dict(zip("ab", shapes, strict=True)), equation=equation))
    assert node.op_class == OpClass.MATMUL and node.gemm == gemm and node.macs == np.prod(gemm)


def test_batch_norm_counts_what_is_trained():
    source = single("BatchNormalization", {"x": [2, 16, 4, 4]}, [weight(n, 16) for n in ("s", "b", "mean", "var")])
    node = node_of(source)
    assert node.op_class == OpClass.BATCH_NORM and node.parameters == 32 and node.weight_bytes == 4 * 16 * 4
    assert node.flops == 2 * 2 * 16 * 16


def test_lstm():
    source = single(
        "LSTM",
        {"x": [20, 3, 12]},
        [weight("w", 2, 32, 12), weight("r", 2, 32, 8), weight("b", 2, 64)],
        outputs=3,
        hidden_size=8,
        direction="bidirectional",
    )
    node = node_of(source)
    assert node.op_class == OpClass.RECURRENT and node.output_shape == (20, 2, 3, 8)
    assert node.gemm == (3, 32, 20, 40) and node.macs == 3 * 32 * 20 * 40
    assert node.parameters == 2 * 32 * 12 + 2 * 32 * 8 + 2 * 64


def test_gru_and_rnn_gates():
    gru = node_of(single("GRU", {"x": [5, 2, 12]}, [weight("w", 1, 24, 12), weight("r", 1, 24, 8)], hidden_size=8))
    rnn = node_of(single("RNN", {"x": [5, 2, 12]}, [weight("w", 1, 8, 12), weight("r", 1, 8, 8)], hidden_size=8))
    assert gru.macs == 3 * rnn.macs == 3 * 5 * 2 * 8 * 20


def test_dynamic_quantised_lstm_is_shaped_and_counted():
    names = ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"]
    weights = [weight("w", 1, 12, 32, dtype=np.int8), weight("r", 1, 8, 32, dtype=np.int8), weight("b", 1, 64)]
    weights += [weight(n, 1) for n in ("ws", "rs")] + [weight(n, 1, dtype=np.int8) for n in ("wz", "rz")]
    source = single("DynamicQuantizeLSTM", {"x": [5, 2, 12]}, weights, names, domain="com.microsoft", hidden_size=8)
    node = node_of(source)
    assert node.resolved and node.output_shape == (5, 1, 2, 8) and node.macs == 5 * 2 * 32 * 20
    assert node.parameters == 32 * 20 + 64


def test_standard_attention():
    shapes = {"q": [2, 8, 16, 64], "k": [2, 8, 20, 64], "v": [2, 8, 20, 64]}
    node = node_of(single("Attention", shapes, opset=23))
    assert node.op_class == OpClass.ATTENTION and node.gemm == (16, 20, 64, 32)
    assert node.macs == 2 * 16 * 16 * 20 * 64 and node.output_shape == (2, 8, 16, 64)


def test_fused_attention_counts_its_projection():
    source = single(
        "Attention", {"x": [2, 10, 64]}, [weight("w", 64, 192), weight("b", 192)], domain="com.microsoft", num_heads=4
    )
    node = node_of(source)
    assert node.op_class == OpClass.ATTENTION and node.output_shape == (2, 10, 64)
    assert node.macs == 2 * 10 * 64 * 192 + 2 * (2 * 4 * 10 * 10 * 16)


@pytest.mark.parametrize(
    ("source", "op_class", "macs"),
    [
        (single("FusedConv", {"x": [1, 3, 8, 8]}, [weight("w", 4, 3, 1, 1)], domain="com.microsoft", activation="Relu"),
         OpClass.CONV, 64 * 12),
        (single("FusedMatMul", {"a": [5, 8, 4], "b": [5, 8, 6]}, domain="com.microsoft", transA=1),
         OpClass.MATMUL, 5 * 4 * 6 * 8),
        (single("MatMulInteger", {"x": [3, 8]}, [weight("w", 8, 6, dtype=np.int8)]), OpClass.GEMM, 144),
        (single("MatMulNBits", {"x": [3, 64]}, [weight("w", 6, 2, 16, dtype=np.uint8), weight("s", 12)],
                domain="com.microsoft", K=64, N=6, bits=4, block_size=32), OpClass.GEMM, 3 * 64 * 6),
    ],
)  # fmt: skip
def test_fused_and_quantised_products(source, op_class, macs):
    if source.graph.node[0].op_type == "MatMulInteger":
        source.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.UINT8
    node = node_of(source)
    assert node.resolved and node.op_class == op_class and node.macs == macs


@pytest.mark.parametrize(
    ("source", "shape"),
    [
        (single("DynamicQuantizeMatMul", {"x": [2, 5, 8]}, [weight("w", 8, 4, dtype=np.uint8), weight("s", 1)],
                domain="com.microsoft"), (2, 5, 4)),
        (single("QGemm", {"x": [2, 8]}, [weight("s", 1), weight("z", 1), weight("w", 8, 4, dtype=np.uint8)],
                domain="com.microsoft"), (2, 4)),
        (single("QLinearGlobalAveragePool", {"x": [1, 8, 8, 4]}, [weight("s", 1)], domain="com.microsoft",
                channels_last=1), (1, 1, 1, 4)),
        (single("NhwcFusedConv", {"x": [1, 8, 8, 3]}, [weight("w", 4, 3, 3, 3)], domain="com.microsoft"),
         (1, 6, 6, 4)),
        (single("MultiHeadAttention", {"q": [2, 10, 64], "k": [2, 12, 64], "v": [2, 12, 32]}, domain="com.microsoft",
                num_heads=4), (2, 10, 32)),
        (single("GroupQueryAttention", {"q": [2, 10, 64], "k": [2, 10, 16], "v": [2, 10, 16]}, domain="com.microsoft",
                num_heads=4, kv_num_heads=1), (2, 10, 64)),
        (single("BiasGelu", {"x": [2, 10, 64]}, [weight("b", 64)], domain="com.microsoft"), (2, 10, 64)),
    ],
)  # fmt: skip
def test_shapes_of_onnxruntimes_own_operators(source, shape):
    node = node_of(source)
    assert node.resolved and node.output_shape == shape and node.op_class != OpClass.OTHER


def test_skip_layer_norm():
    source = single(
        "SkipLayerNormalization", {"x": [2, 10, 64], "s": [2, 10, 64]}, [weight("g", 64)], domain="com.microsoft"
    )
    node = node_of(source)
    assert node.op_class == OpClass.LAYER_NORM and node.output_shape == (2, 10, 64) and node.parameters == 64


def test_embedding_reads_rows_not_the_table():
    source = single("Gather", {}, [weight("table", 1000, 64)], inputs=["table", "ids"])
    source.graph.input.append(value("ids", [2, 5], INT64))
    node = node_of(source)
    assert node.op_class == OpClass.EMBEDDING and node.output_shape == (2, 5, 64)
    assert node.weight_bytes == 10 * 64 * 4 and node.parameters == 64000 and node.input_bytes == 80


def test_slice_reads_a_part():
    node = node_of(single("Slice", {"x": [1, 100, 8]}, [ints("s", 0), ints("e", 10), ints("a", 1)]))
    assert node.op_class == OpClass.DATA_MOVEMENT and node.input_bytes == node.output_bytes == 320
    assert node.weight_bytes == 0 and node.flops == 0


def test_views_move_nothing():
    node = node_of(single("Reshape", {"x": [2, 12]}, [ints("shape", 2, 3, 4)]))
    assert node.op_class == OpClass.VIEW and node.output_shape == (2, 3, 4)
    assert node.input_bytes == node.output_bytes == node.weight_bytes == node.flops == 0


@pytest.mark.parametrize(
    ("op_type", "attributes", "op_class", "flops"),
    [
        ("Relu", {}, OpClass.ACTIVATION, 128),
        ("Sigmoid", {}, OpClass.ACTIVATION, 512),
        ("Softmax", {}, OpClass.SOFTMAX, 640),
        ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}, OpClass.POOLING, 128),
        ("GlobalAveragePool", {}, OpClass.GLOBAL_POOLING, 128),
        ("LRN", {"size": 5}, OpClass.LRN, 128 * 9),
        ("ReduceMean", {"axes": [2, 3]}, OpClass.REDUCTION, 128),
        ("Transpose", {}, OpClass.DATA_MOVEMENT, 0),
    ],
)
def test_classes_without_macs(op_type, attributes, op_class, flops):
    node = node_of(single(op_type, {"x": [2, 4, 4, 4]}, **attributes))
    assert (node.op_class, node.macs, node.flops) == (op_class, 0, flops)


def test_same_tensor_twice_is_read_once():
    node = node_of(single("Mul", {"x": [2, 8]}, inputs=["x", "x"]))
    assert node.op_class == OpClass.ELEMENTWISE and node.input_bytes == 64


def test_shared_weights_count_their_parameters_once():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("MatMul", ["h", "w"], ["y"])]
    graph = read_graph(model(nodes, {"x": [1, 8]}, ["y"], [weight("w", 8, 8)]))
    assert graph.parameters == 64 and [node.weight_bytes for node in graph.nodes] == [256, 256]


def test_half_precision_halves_the_bytes():
    source = single("Relu", {"x": [1, 8]})
    source.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    node = node_of(source)
    assert node.dtype == "float16" and node.output_bytes == 16


def test_unknown_operator_is_kept_with_its_bytes():
    nodes = [
        helper.make_node("Mystery", ["x"], ["h"], domain="acme"),
        helper.make_node("Relu", ["h"], ["y"]),
    ]
    graph = read_graph(model(nodes, {"x": [2, 8]}, ["y"]))
    assert graph.unknown_operators == ["acme.Mystery"] and graph.nodes[0].op_class == OpClass.OTHER
    assert graph.nodes[0].input_bytes == 64 and not graph.nodes[1].resolved
    assert len(graph.warnings) == 2


def test_linear_classifier():
    node = helper.make_node(
        "LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml",
        coefficients=[0.0] * 12, intercepts=[0.0] * 3, classlabels_ints=[0, 1, 2],
    )  # fmt: skip
    source = model([node], {"x": ["N", 4]}, ["scores"])
    source.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    graph = read_graph(source, batch=5)
    assert graph.nodes[0].op_class == OpClass.CLASSICAL_ML and graph.macs == 60 and graph.parameters == 15
    assert graph.outputs[0].shape == (5, 3)


@pytest.mark.parametrize("domain", ["", "ai.onnx.ml"])
def test_every_operator_of_the_standard_has_a_class(domain):
    prefix = f"{domain}." if domain else ""
    names = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == domain}
    assert sorted(name for name in names if prefix + name not in CLASSES) == []
