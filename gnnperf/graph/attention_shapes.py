"""Output shapes of onnxruntime's fused attention."""

from __future__ import annotations

from gnnperf.graph.tensor_types import Rule, TensorType
from gnnperf.graph.traced import Operator


def _attention(operator: Operator) -> list[TensorType] | None:
    tensor, weight = operator.inputs[0], operator.input_shape(1)
    if tensor.shape is None or weight is None:
        return None
    sizes = operator.attributes.get("qkv_hidden_sizes")
    hidden = sizes[2] if sizes else weight[1] // 3
    return [TensorType(tensor.dtype, (*tensor.shape[:-1], hidden)), TensorType(tensor.dtype, None)]


def _multi_head_attention(operator: Operator) -> list[TensorType] | None:
    query, value = operator.inputs[0], operator.input(2)
    if query.shape is None or query.rank != 3:
        return None
    hidden = value.shape[2] if value is not None and value.rank == 3 else query.shape[2]
    types = [TensorType(query.dtype, (*query.shape[:2], hidden))]
    present = operator.input(1)
    if present is not None and present.rank == 3 and value is not None and value.rank == 3:
        heads, past = operator.attributes["num_heads"], operator.input_shape(6)
        length = present.shape[1] + (past[2] if past else 0)
        for tensor in (present, value):
            types.append(TensorType(query.dtype, (query.shape[0], heads, length, tensor.shape[2] // heads)))
    return types


def _group_query_attention(operator: Operator) -> list[TensorType] | None:
    query, key = operator.inputs[0], operator.input(1)
    if query.shape is None:
        return None
    heads, kv_heads = operator.attributes["num_heads"], operator.attributes["kv_num_heads"]
    batch, length, width = query.shape
    head_size = width // heads if key is not None else width // (heads + 2 * kv_heads)
    past = operator.input_shape(3)
    cache = TensorType(query.dtype, (batch, kv_heads, length + (past[2] if past else 0), head_size))
    return [TensorType(query.dtype, (batch, length, heads * head_size)), cache, cache]


def _like_query(operator: Operator) -> list[TensorType] | None:
    query = operator.inputs[0]
    return [TensorType(query.dtype, query.shape)]


def _masked_decoder_attention(operator: Operator) -> list[TensorType] | None:
    query, past = operator.inputs[0], operator.input(5)
    cache = TensorType(query.dtype, past.shape if past is not None else None)
    return [TensorType(query.dtype, query.shape), cache, cache]


def _packed_multi_head_attention(operator: Operator) -> list[TensorType] | None:
    query, value = operator.inputs[0], operator.input(2)
    if not query.shape:
        return None
    if query.rank == 4:  # [tokens, heads, 3, size]
        return [TensorType(query.dtype, (query.shape[0], query.shape[1] * query.shape[3]))]
    return [TensorType(query.dtype, (query.shape[0], (value or query).shape[1]))]


def _paged_attention(operator: Operator) -> list[TensorType] | None:
    query, heads = operator.inputs[0], operator.attributes["num_heads"]
    caches = [operator.input(3), operator.input(4)]
    if not query.shape:
        return None
    width = query.shape[1]
    if operator.input(1) is None:  # Q, K and V packed
        width = width // (heads + 2 * operator.attributes["kv_num_heads"]) * heads
    return [TensorType(query.dtype, (query.shape[0], width)), *(TensorType(c.dtype, c.shape) for c in caches)]


def _linear_attention(operator: Operator) -> list[TensorType] | None:
    query, key, value = operator.input_shape(0), operator.input_shape(1), operator.input_shape(2)
    if not query or not key or not value:
        return None
    heads, kv_heads = operator.attributes["q_num_heads"], operator.attributes["kv_num_heads"]
    key_size, value_size = key[2] // kv_heads, value[2] // kv_heads
    dtype = operator.inputs[0].dtype
    state = TensorType(dtype, (query[0], kv_heads, key_size, value_size))
    return [TensorType(dtype, (query[0], query[1], heads * value_size)), state]


_MS = "com.microsoft."

ATTENTION_RULES: dict[str, Rule] = {
    **dict.fromkeys([_MS + "Attention", _MS + "QAttention", _MS + "PackedAttention"], _attention),
    _MS + "DecoderMaskedSelfAttention": _attention,
    _MS + "MultiHeadAttention": _multi_head_attention,
    **dict.fromkeys([_MS + "GroupQueryAttention", _MS + "SparseAttention"], _group_query_attention),
    **dict.fromkeys([_MS + "DecoderAttention", _MS + "LongformerAttention"], _like_query),
    **dict.fromkeys([_MS + "QOrderedAttention", _MS + "QOrderedLongformerAttention"], _like_query),
    _MS + "DecoderMaskedMultiHeadAttention": _masked_decoder_attention,
    _MS + "PackedMultiHeadAttention": _packed_multi_head_attention,
    _MS + "PagedAttention": _paged_attention,
    _MS + "LinearAttention": _linear_attention,
}
