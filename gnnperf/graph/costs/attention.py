"""Fused attention: ai.onnx's operator and those of onnxruntime."""

from __future__ import annotations

from math import prod

from gnnperf.graph.opgraph import Node, OpClass
from gnnperf.graph.traced import Operator

_SOFTMAX_FLOPS = 5


def attention(operator: Operator, node: Node) -> None:
    """``softmax(Q K^T) V`` for every head; ``gemm`` holds both products, as if their widths were equal.

    Operators that project their input to Q, K and V first (``com.microsoft.Attention``) count the projection among
    their multiply-accumulates, and leave it out of ``gemm``.
    """
    node.op_class = OpClass.ATTENTION
    sizes = _SIZES.get(operator.op, _packed_sizes)(operator)
    if sizes is None:
        node.resolved = False
        return
    batch, heads, queries, keys, head_size, value_size, projection = sizes
    products = batch * heads
    node.gemm = (queries, keys, (head_size + value_size) // 2, 2 * products)
    node.macs = projection + products * queries * keys * (head_size + value_size)
    node.flops = 2 * node.macs + _SOFTMAX_FLOPS * products * queries * keys


def linear_attention(operator: Operator, node: Node) -> None:
    """A recurrent state of ``key size x value size`` for every head, updated and read once a token: no softmax."""
    node.op_class = OpClass.ATTENTION
    query, key, value = (operator.input_shape(i) for i in range(3))
    if not query or not key or not value:
        node.resolved = False
        return
    heads, kv_heads = operator.attributes["q_num_heads"], operator.attributes["kv_num_heads"]
    key_size, value_size = key[2] // kv_heads, value[2] // kv_heads
    node.gemm = (query[1], value_size, key_size, query[0] * (heads + kv_heads))
    node.macs = prod(node.gemm)
    node.flops = 2 * node.macs


def _standard_sizes(operator: Operator):
    """Q, K, V as ``[batch, heads, length, size]`` or ``[batch, length, heads * size]``."""
    query, key, value = (operator.input_shape(i) for i in range(3))
    past = operator.input_shape(4)
    if not query or not key or not value:
        return None
    if len(query) == 4:
        batch, heads, queries, head_size = query
        return batch, heads, queries, key[2] + (past[2] if past else 0), head_size, value[3], 0
    heads, kv_heads = operator.attributes["q_num_heads"], operator.attributes["kv_num_heads"]
    keys = key[1] + (past[2] if past else 0)
    return query[0], heads, query[1], keys, query[2] // heads, value[2] // kv_heads, 0


def _projected_sizes(operator: Operator):
    """``com.microsoft.Attention``: input ``[batch, length, features]``, weight ``[features, 3 * hidden]``."""
    source, weight = operator.input_shape(0), operator.input_shape(1)
    if not source or not weight or len(source) != 3:
        return None
    heads = operator.attributes["num_heads"]
    hidden = operator.attributes.get("qkv_hidden_sizes") or (weight[1] // 3,) * 3
    past = operator.input_shape(8 if operator.op == "com.microsoft.QAttention" else 4)
    keys = source[1] + (past[3] if past else 0)
    return source[0], heads, source[1], keys, hidden[0] // heads, hidden[2] // heads, prod(source) * weight[1]


def _split_projection_sizes(operator: Operator):
    """``com.microsoft.QOrderedAttention``: weights of Q, K and V apart, inputs 5 to 7."""
    source, weights = operator.input_shape(0), [operator.input_shape(i) for i in (5, 6, 7)]
    heads, widths = operator.attributes["num_heads"], [weight[1] for weight in weights]
    projection = prod(source) * sum(widths)
    return source[0], heads, source[1], source[1], widths[0] // heads, widths[2] // heads, projection


def _decoder_sizes(operator: Operator):
    """``com.microsoft.DecoderAttention``: ``[length, batch, features]``, projected to Q, and to K and V together."""
    query, key, query_weight, kv_weight = (operator.input_shape(i) for i in range(4))
    heads, width = operator.attributes["num_heads"], query_weight[1]
    projection = prod(query) * width + prod(key) * kv_weight[1]
    return query[1], heads, query[0], key[0], width // heads, width // heads, projection


def _window_sizes(operator: Operator):
    """``com.microsoft.LongformerAttention``: a window on both sides; global tokens are left out."""
    source, weight = operator.input_shape(0), operator.input_shape(2 if "QOrdered" in operator.op else 1)
    heads, width = operator.attributes["num_heads"], weight[1] // 3
    keys = min(source[1], 2 * operator.attributes["window"] + 1)
    return source[0], heads, source[1], keys, width // heads, width // heads, prod(source) * weight[1]


def _unpadded_sizes(operator: Operator):
    """``com.microsoft.PackedAttention`` and its kin: tokens without padding, as if all sequences were full."""
    source, heads = operator.input_shape(0), operator.attributes["num_heads"]
    if operator.op == "com.microsoft.PackedAttention":
        batch, length = operator.input_shape(3)
        weight = operator.input_shape(1)
        widths = operator.attributes.get("qkv_hidden_sizes") or (weight[1] // 3,) * 3
        return batch, heads, length, length, widths[0] // heads, widths[2] // heads, prod(source) * weight[1]
    batch, length = operator.input_shape(4)
    head_size = source[3] if len(source) == 4 else source[1] // heads  # packed: [tokens, heads, 3, size]
    value = operator.input_shape(2)
    return batch, heads, length, length, head_size, value[1] // heads if value else head_size, 0


def _masked_decoder_sizes(operator: Operator):
    """``com.microsoft.DecoderMaskedMultiHeadAttention``: one new token, and all that are in the cache."""
    query, past, heads = operator.input_shape(0), operator.input_shape(5), operator.attributes["num_heads"]
    head_size = query[2] // heads
    keys = past[2] if past else operator.input_shape(1)[1]
    return query[0], heads, query[1], keys, head_size, head_size, 0


def _multi_head_sizes(operator: Operator):
    """``com.microsoft.MultiHeadAttention``: Q, K, V apart, or packed into the first input."""
    query, key, value = (operator.input_shape(i) for i in range(3))
    if not query:
        return None
    heads = operator.attributes["num_heads"]
    if len(query) == 5:  # packed: [batch, length, heads, 3, size]
        return query[0], heads, query[1], query[1], query[4], query[4], 0
    head_size = query[2] // heads
    if key is None:
        return query[0], heads, query[1], query[1], head_size, head_size, 0
    past = operator.input_shape(6)
    keys = (key[2] if len(key) == 4 else key[1]) + (past[2] if past else 0)
    value_size = head_size if not value else value[3] if len(value) == 4 else value[2] // heads
    return query[0], heads, query[1], keys, head_size, value_size, 0


def _packed_sizes(operator: Operator):
    """``com.microsoft.GroupQueryAttention`` and its kin: fewer heads for K and V than for Q."""
    query, key, past = operator.input_shape(0), operator.input_shape(1), operator.input_shape(3)
    if not query or len(query) != 3:
        return None
    heads = operator.attributes.get("num_heads", operator.attributes.get("q_num_heads", 1))
    kv_heads = operator.attributes.get("kv_num_heads", heads)
    head_size = query[2] // heads if key else query[2] // (heads + 2 * kv_heads)
    keys = (key[1] if key else query[1]) + (past[2] if past and len(past) == 4 else 0)
    return query[0], heads, query[1], keys, head_size, head_size, 0


_SIZES = {
    "com.microsoft.DecoderAttention": _decoder_sizes,
    "com.microsoft.DecoderMaskedMultiHeadAttention": _masked_decoder_sizes,
    "com.microsoft.DecoderMaskedSelfAttention": _projected_sizes,
    "com.microsoft.LongformerAttention": _window_sizes,
    "com.microsoft.PackedAttention": _unpadded_sizes,
    "com.microsoft.PackedMultiHeadAttention": _unpadded_sizes,
    "com.microsoft.QOrderedAttention": _split_projection_sizes,
    "com.microsoft.QOrderedLongformerAttention": _window_sizes,
    "Attention": _standard_sizes,
    "ai.onnx.preview.FlexAttention": _standard_sizes,
    "com.microsoft.Attention": _projected_sizes,
    "com.microsoft.QAttention": _projected_sizes,
    "com.microsoft.MultiHeadAttention": _multi_head_sizes,
}
