"""Operators of onnxruntime that exporters and its optimiser emit: class, output shape and cost, worked out by hand."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import INT64, ints, model, single, value, weight

from gnnperf.errors import ModelFileError
from gnnperf.graph import OpClass, read_graph
from gnnperf.graph.costs.describe import CLASSES


def contrib(op_type, shapes, initializers=(), inputs=None, outputs=1, dtypes=None, **attributes):
    """The first node of a model of one com.microsoft operator."""
    source = single(op_type, shapes, initializers, inputs, outputs, domain="com.microsoft", **attributes)
    for declared in source.graph.input:
        declared.type.tensor_type.elem_type = (dtypes or {}).get(declared.name, TensorProto.FLOAT)
    graph = read_graph(source)
    assert not graph.unknown_operators
    return graph.nodes[0]


def int8(name, *shape):
    return weight(name, *shape, dtype=np.int8)


PRODUCTS = {
    "GemmFastGelu": ([weight("w", 8, 6)], None, {}, (3, 6), 3 * 8 * 6),
    "FusedMatMulActivation": ([weight("w", 6, 8)], None, {"transB": 1, "activation": "Relu"}, (3, 6), 3 * 8 * 6),
    "GemmFloat8": ([weight("w", 6, 8)], None, {"transB": 1}, (3, 6), 3 * 8 * 6),
    "QOrderedMatMul": ([weight("sa"), weight("w", 8, 6)], None, {}, (3, 6), 3 * 8 * 6),
    "MatMulNBits": ([weight("w", 6, 1, 4, dtype=np.uint8)], None, {"K": 8, "N": 6, "bits": 4}, (3, 6), 3 * 8 * 6),
    "MatMulFpQ4": ([weight("w", 32, dtype=np.uint8), ints("shape", 8, 6)], None, {}, (3, 6), 3 * 8 * 6),
    "MatMulNBitsMlp": ([weight("w", 4)], ["x", "", "", "w"], {"K": 8, "N": 6}, (3, 6), 2 * 3 * 8 * 6),
    "MatMulNBitsQkv": ([weight("w", 4)], ["x", "", "", "w"], {"K": 8, "Nq": 6, "Nkv": 2}, (3, 6), 3 * 8 * (6 + 4)),
    "MatMulBlockQuantizedFp4Weight": ([weight("w", 6, 4, dtype=np.uint8)], None, {}, (3, 6), 3 * 8 * 6),
}


@pytest.mark.parametrize("op_type", PRODUCTS)
def test_products_by_packed_and_fused_weights(op_type):
    initializers, inputs, attributes, shape, macs = PRODUCTS[op_type]
    node = contrib(op_type, {"x": [3, 8]}, initializers, inputs, **attributes)
    assert (node.op_class, node.output_shape, node.macs) == (OpClass.GEMM, shape, macs)
    assert np.prod(node.gemm) == macs and node.resolved


def test_a_product_whose_batch_is_transposed():
    node = contrib("FusedMatMul", {"a": [4, 5, 8], "b": [5, 8, 6]}, transBatchA=1)
    assert (node.op_class, node.output_shape, node.gemm) == (OpClass.MATMUL, (5, 4, 6), (4, 6, 8, 5))


HEADS = {"num_heads": 4}
QKV = weight("w", 64, 192)
ATTENTION = {
    # batch 2, 10 tokens, 4 heads of 16
    "PackedAttention": ({"x": [20, 64]}, [QKV, weight("b", 192), weight("o", 2, 10, dtype=np.int32)],
                        None, HEADS, (20, 64), 20 * 64 * 192 + 2 * 4 * 10 * 10 * 32),
    "PackedMultiHeadAttention": ({"q": [20, 64], "k": [20, 64], "v": [20, 64]}, [weight("o", 2, 10, dtype=np.int32)],
                                 ["q", "k", "v", "", "o"], HEADS, (20, 64), 2 * 4 * 10 * 10 * 32),
    "DecoderMaskedMultiHeadAttention": (
        {"q": [2, 1, 64], "k": [2, 1, 64], "v": [2, 1, 64], "past": [2, 4, 30, 16]}, [],
        ["q", "k", "v", "", "", "past", "past"], HEADS, (2, 1, 64), 2 * 4 * 30 * 32),
    "DecoderMaskedSelfAttention": ({"x": [2, 1, 64], "past": [2, 2, 4, 30, 16]}, [QKV, weight("b", 192)],
                                   ["x", "w", "b", "", "past"], HEADS, (2, 1, 64), 2 * 64 * 192 + 2 * 4 * 31 * 32),
    "LongformerAttention": ({"x": [2, 100, 64]}, [QKV], None, {**HEADS, "window": 8}, (2, 100, 64),
                            200 * 64 * 192 + 2 * 4 * 100 * 17 * 32),
    "SparseAttention": ({"q": [2, 10, 64], "k": [2, 10, 32], "v": [2, 10, 32], "past": [2, 2, 5, 16]}, [],
                        ["q", "k", "v", "past", "past"], {**HEADS, "kv_num_heads": 2}, (2, 10, 64),
                        2 * 4 * 10 * 15 * 32),
    "QOrderedAttention": ({"x": [2, 10, 64]}, [int8(name, 64, 64) for name in ("q", "k", "v")],
                          ["x", "", "", "", "", "q", "k", "v"], HEADS, (2, 10, 64),
                          3 * 20 * 64 * 64 + 2 * 4 * 100 * 32),
    "DecoderAttention": ({"q": [10, 2, 64], "k": [20, 2, 64]}, [weight("wq", 64, 64), weight("wkv", 64, 128)], None,
                         HEADS, (10, 2, 64), 20 * 64 * 64 + 40 * 64 * 128 + 2 * 4 * 10 * 20 * 32),
    # a state of 16 x 16 for each of 4 + 4 heads, once a token
    "LinearAttention": ({"q": [2, 10, 64], "k": [2, 10, 64], "v": [2, 10, 64]}, [], None,
                        {"q_num_heads": 4, "kv_num_heads": 4}, (2, 10, 64), 2 * 10 * 8 * 256),
}  # fmt: skip


@pytest.mark.parametrize("op_type", ATTENTION)
def test_attention(op_type):
    shapes, initializers, inputs, attributes, shape, macs = ATTENTION[op_type]
    node = contrib(op_type, shapes, initializers, inputs, **attributes)
    assert (node.op_class, node.output_shape, node.macs) == (OpClass.ATTENTION, shape, macs)


@pytest.mark.parametrize("bits", [4, 8])
def test_experts_count_those_that_a_token_visits(bits):
    """32 tokens of 64, each through 2 of 8 experts of width 256, weights of half a byte or one."""
    pack, names = 8 // bits, ["x", "router", "fc1", "", "", "fc2"]
    weights = [weight("fc1", 8, 256, 64 // pack, dtype=np.uint8), weight("fc2", 8, 64, 256 // pack, dtype=np.uint8)]
    node = contrib("QMoE", {"x": [32, 64], "router": [32, 8]}, weights, names, k=2, expert_weight_bits=bits)
    assert node.op_class == OpClass.GEMM and node.output_shape == (32, 64)
    assert node.macs == 32 * 2 * 2 * 64 * 256 == np.prod(node.gemm)
    assert node.weight_bytes == 8 * 2 * 64 * 256 // pack


def test_one_token_reads_only_its_experts():
    weights = [weight("fc1", 8, 64, 256), weight("b", 8, 256), weight("fc2", 8, 256, 64)]
    node = contrib("MoE", {"x": [1, 64], "router": [1, 8]}, weights, k=2)
    assert node.macs == 2 * 2 * 64 * 256 and node.weight_bytes == 2 * 4 * (2 * 64 * 256 + 256)


SHAPES = {
    "BiasSplitGelu": ({"x": [2, 10, 64]}, [weight("b", 64)], {}, (2, 10, 32)),
    "CDist": ({"a": [5, 8], "b": [7, 8]}, [], {"metric": "euclidean"}, (5, 7)),
    "CropAndResize": ({"x": [1, 3, 32, 32], "rois": [6, 4]}, [ints("i", *[0] * 6), ints("size", 7, 9)], {},
                      (6, 3, 7, 9)),
    "ExpandDims": ({"x": [2, 3]}, [ints("axis", 1)], {}, (2, 1, 3)),
    "GatedAdd": ({"x": [2, 3], "y": [2, 3], "gate": [2, 3]}, [], {}, (2, 3)),
    "GatherND": ({"x": [4, 5, 6]}, [ints("i", 1, 2)], {}, (6,)),
    "GridSample": ({"x": [1, 3, 8, 8], "grid": [1, 4, 5, 2]}, [], {}, (1, 3, 4, 5)),
    "Irfft": ({"x": [2, 9, 2]}, [], {"onesided": 1, "normalized": 0, "signal_ndim": 1}, (2, 16)),
    "MaxpoolWithMask": ({"x": [1, 3, 8, 8], "m": [1, 3, 8, 8]}, [], {"kernel_shape": [2, 2], "strides": [2, 2]},
                        (1, 3, 4, 4)),
    "MulInteger": ({"x": [2, 3], "z": [], "y": [3]}, [], {}, (2, 3)),
    "NhwcConv": ({"x": [1, 8, 8, 3]}, [weight("w", 4, 3, 3, 3)], {}, (1, 6, 6, 4)),
    "QLinearReduceMean": ({"x": [2, 3, 4]}, [weight("s"), int8("z")], {"axes": [1], "keepdims": 1}, (2, 1, 4)),
    "ReduceSumInteger": ({"x": [2, 3, 4]}, [], {"axes": [-1], "keepdims": 0}, (2, 3)),
    "RelativePositionBias": ({"x": [32, 8]}, [ints("q", 10), ints("k", 12)], {"max_distance": 128}, (1, 8, 10, 12)),
    "RemovePadding": ({"x": [2, 10, 64], "n": [2]}, [], {}, (20, 64)),
    "RestorePadding": ({"x": [15, 64], "o": [2, 10]}, [], {}, (2, 10, 64)),
    "Rfft": ({"x": [2, 16]}, [], {"onesided": 1, "normalized": 0, "signal_ndim": 1}, (2, 9, 2)),
    "SkipGroupNorm": ({"x": [1, 8, 8, 16]}, [weight("g", 16), weight("b", 16), weight("s", 1, 8, 8, 16)],
                      {"groups": 4}, (1, 8, 8, 16)),
    "SwiGLU": ({"gate": [2, 8], "up": [2, 8]}, [], {}, (2, 8)),
    "UnfoldTensor": ({"x": [2, 10]}, [], {"dim": 1, "size": 4, "step": 2}, (2, 4, 4)),
}  # fmt: skip


@pytest.mark.parametrize("op_type", SHAPES)
def test_shapes(op_type):
    shapes, initializers, attributes, expected = SHAPES[op_type]
    node = contrib(op_type, shapes, initializers, **attributes)
    assert node.output_shape == expected and node.resolved and node.op_class != OpClass.OTHER


def test_tables_of_quantised_rows():
    """``[100, 32]`` bytes hold rows of 64 four-bit numbers."""
    table = weight("table", 100, 32, dtype=np.uint8)
    source = single("GatherBlockQuantized", {"ids": [2, 5]}, [table, weight("scales", 100, 4)],
                    ["table", "ids", "scales"], domain="com.microsoft", bits=4)  # fmt: skip
    source.graph.input[0].type.tensor_type.elem_type = INT64
    node = read_graph(source).nodes[0]
    assert node.output_shape == (2, 5, 64) and node.op_class == OpClass.DATA_MOVEMENT


def test_a_compiled_network_is_refused():
    with pytest.raises(ModelFileError, match="compiled for one accelerator"):
        read_graph(single("EPContext", {"x": [1, 3]}, domain="com.microsoft"))


def test_networks_inside_an_unknown_operator_are_said_to_be_left_out():
    decoder = helper.make_graph(
        [helper.make_node("Relu", ["a"], ["b"])], "decoder", [value("a", [1])], [value("b", [1])]
    )
    graph = read_graph(single("BeamSearch", {"ids": [1, 5]}, domain="com.microsoft", decoder=decoder))
    assert any("networks inside com.microsoft.BeamSearch are not counted" in warning for warning in graph.warnings)


# Operators of onnxruntime's own list that no exporter writes: kept with their bytes, as an unknown operator.
NOT_CLASSED = {
    "AttnLSTM", "BeamSearch", "BifurcationDetector", "DynamicTimeWarping", "EPContext", "GreedySearch", "MurmurHash3",
    "SampleOp", "Sampling", "Snpe", "WhisperBeamSearch", "WordConvEmbedding",
    # of single networks, new in onnxruntime 1.30 and later
    "ConvStateReplay", "DynamicSparseAttention", "EngramGate", "GatedDeltaNet", "GatedDeltaNetStateReplay",
    "GatherPacked", "HyperConnectionLowRankMix", "HyperConnectionPostMix", "HyperConnectionPreMix",
    "LinearAttentionGate", "Mamba2Verify", "MoEGroupRouter", "MoEPacked", "NGramHashMapping",
    "PackedSparseAttentionIndexer", "PackedSparseAttentionIndexerMerge", "RouterGateUpProj", "SparseAttentionIndexer",
    "SparsePagedAttention", "SpeculativePrefixCommit", "VarlenCausalConvWithState", "VarlenNGramHashMapping",
}  # fmt: skip


def test_every_other_contrib_operator_of_onnxruntime_has_a_class():
    from onnxruntime.capi import onnxruntime_pybind11_state as onnxruntime

    names = {schema.name for schema in onnxruntime.get_all_operator_schema() if schema.domain == "com.microsoft"}
    assert len(names) > 100
    assert {name for name in names if f"com.microsoft.{name}" not in CLASSES} <= NOT_CLASSED
    assert not {name for name in NOT_CLASSED if f"com.microsoft.{name}" in CLASSES}


@pytest.mark.parametrize(
    ("dtype", "element_bytes"),
    [("FLOAT8E4M3FN", 1), ("FLOAT8E5M2", 1), ("BFLOAT16", 2), ("INT4", 0.5), ("UINT4", 0.5), ("FLOAT4E2M1", 0.5)],
)
def test_small_number_formats(dtype, element_bytes):
    from gnnperf.graph import to_arrays

    source = model(
        [helper.make_node("Cast", ["x"], ["y"], to=getattr(TensorProto, dtype))], {"x": [4, 7]}, ["y"], opset=24
    )
    graph = read_graph(source)
    assert graph.nodes[0].output_bytes == 28 * element_bytes == graph.output_bytes
    assert to_arrays(graph).column("element_bytes").tolist() == [element_bytes]


def test_the_package_has_the_schema_of_every_operator_in_a_table():
    """A typo in a table would never be noticed otherwise."""
    from onnxruntime.capi import onnxruntime_pybind11_state as onnxruntime

    known = {schema.name for schema in onnx.defs.get_all_schemas_with_history()}
    known |= {schema.name for schema in onnxruntime.get_all_operator_schema()}
    legacy = {"Affine", "Crop", "ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh"}  # before onnx 1.5
    unnamed = {"SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization", "DequantizeLinear"}
    assert {op.rpartition(".")[2] for op in CLASSES} - known - legacy - unnamed == set()
