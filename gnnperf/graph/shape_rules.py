"""Output shapes of operators outside ai.onnx, and of the few standard ones that ONNX's own inference leaves open."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import TensorProto

from gnnperf.graph.attention_shapes import ATTENTION_RULES
from gnnperf.graph.dims import MAX_RANK
from gnnperf.graph.product_shapes import PRODUCT_RULES
from gnnperf.graph.sequences import item_at, joined_shape
from gnnperf.graph.tensor_types import Rule, TensorType
from gnnperf.graph.traced import Operator


def _like_first(operator: Operator) -> list[TensorType] | None:
    tensor = operator.inputs[0]
    return [TensorType(tensor.dtype, tensor.shape)]


def _all_like_first(operator: Operator) -> list[TensorType] | None:
    tensor = operator.inputs[0]
    return [TensorType(tensor.dtype, tensor.shape)] * len(operator.node.output)


def _dropout(operator: Operator) -> list[TensorType] | None:
    tensor = operator.inputs[0]
    return [TensorType(tensor.dtype, tensor.shape), TensorType(TensorProto.BOOL, tensor.shape)]


def _skip_layer_norm(operator: Operator) -> list[TensorType] | None:
    tensor = operator.inputs[0]
    statistics = None if tensor.shape is None else (*tensor.shape[:-1], 1)
    same = TensorType(tensor.dtype, tensor.shape)
    return [same, TensorType(TensorProto.FLOAT, statistics), TensorType(TensorProto.FLOAT, statistics), same]


def _broadcast(*positions: int, dtype: int | None = None) -> Rule:
    def rule(operator: Operator) -> list[TensorType] | None:
        shapes = [operator.input_shape(i) for i in positions]
        if None in shapes:
            return None
        kind = operator.inputs[positions[-1]].dtype if dtype is None else dtype
        return [TensorType(kind, np.broadcast_shapes(*shapes))]

    return rule


def _dynamic_quantised_lstm(operator: Operator) -> list[TensorType] | None:
    source, hidden = operator.inputs[0], operator.attributes["hidden_size"]
    if source.shape is None:
        return None
    steps, batch, _ = source.shape
    directions = 2 if operator.attributes.get("direction") == b"bidirectional" else 1
    state = TensorType(source.dtype, (directions, batch, hidden))
    return [TensorType(source.dtype, (steps, directions, batch, hidden)), state, state]


def _embed_layer_norm(operator: Operator) -> list[TensorType] | None:
    ids, table = operator.inputs[0], operator.inputs[2]
    if ids.shape is None or table.shape is None:
        return None
    embedded = TensorType(table.dtype, (*ids.shape, table.shape[1]))
    return [embedded, TensorType(TensorProto.INT32, ids.shape[:1]), embedded]


def _quantised_concat(operator: Operator) -> list[TensorType] | None:
    parts = operator.inputs[2::3]
    if any(part is None or part.shape is None for part in parts):
        return None
    shape, axis = list(parts[0].shape), operator.attributes["axis"]
    shape[axis] = sum(part.shape[axis] for part in parts)
    return [TensorType(parts[0].dtype, tuple(shape))]


def _reshape_by_attribute(operator: Operator) -> list[TensorType] | None:
    """Reshape before opset 5; later its target is an input, which ONNX's own inference handles."""
    source, target = operator.inputs[0], operator.attributes.get("shape")
    if target is None or source.shape is None or len(target) > MAX_RANK:
        return None
    sizes = [source.shape[axis] if size == 0 else size for axis, size in enumerate(target)]
    known = prod(size for size in sizes if size != -1)
    return [TensorType(source.dtype, tuple(source.elements // known if size == -1 else size for size in sizes))]


def _gather_nd(operator: Operator) -> list[TensorType] | None:
    """GatherND; ONNX's own inference reads outside its memory where the indices have a negative size."""
    data, indices, batch_dims = operator.inputs[0], operator.input_shape(1), operator.attributes.get("batch_dims", 0)
    if not data.shape or not indices or not 0 <= batch_dims <= len(data.shape) - indices[-1]:
        return None
    return [TensorType(data.dtype, (*indices[:-1], *data.shape[batch_dims + indices[-1] :]))]


def _classifier(operator: Operator) -> list[TensorType] | None:
    shape, attributes = operator.input_shape(0), operator.attributes
    if shape is None:
        return None
    labels = next((attributes[k] for k in attributes if k.startswith("classlabels_") or k == "classes"), [])
    rows = shape[0] if len(shape) > 1 else 1
    classes = max(len(labels), len(attributes.get("intercepts", ())), 1)
    label_type = TensorProto.STRING if "classlabels_strings" in attributes else TensorProto.INT64
    return [TensorType(label_type, (rows,)), TensorType(TensorProto.FLOAT, (rows, classes))]


def _regressor(operator: Operator) -> list[TensorType] | None:
    shape, attributes = operator.input_shape(0), operator.attributes
    if shape is None:
        return None
    targets = attributes.get("targets", attributes.get("n_targets", 1))
    return [TensorType(TensorProto.FLOAT, (shape[0] if len(shape) > 1 else 1, targets))]


def _zip_map(operator: Operator) -> list[TensorType] | None:
    return [TensorType(TensorProto.UNDEFINED, None, sequence=True)]


def _tree_ensemble(operator: Operator) -> list[TensorType] | None:
    source = operator.inputs[0]
    if not source.shape:
        return None
    return [TensorType(source.dtype, (source.shape[0], operator.attributes.get("n_targets", 1)))]


def _feature_vectorizer(operator: Operator) -> list[TensorType] | None:
    shapes = [operator.input_shape(i) for i in range(len(operator.inputs))]
    if any(not shape for shape in shapes):
        return None
    return [TensorType(TensorProto.FLOAT, (shapes[0][0], sum(prod(shape[1:]) for shape in shapes)))]


def _like(*positions: int) -> Rule:
    """Outputs that look like these inputs."""

    def rule(operator: Operator) -> list[TensorType] | None:
        return [TensorType(operator.inputs[p].dtype, operator.inputs[p].shape) for p in positions]

    return rule


def _typed_like_first(dtype: int) -> Rule:
    return lambda operator: [TensorType(dtype, operator.input_shape(0))]


def _legacy_broadcast(operator: Operator) -> list[TensorType] | None:
    """Elementwise operators before opset 7: the second operand follows the first, aligned where ``axis`` says."""
    return _like_first(operator) if operator.attributes.get("broadcast") else None


def _legacy_cast(operator: Operator) -> list[TensorType] | None:
    """Cast before opset 6 spells its type out."""
    target = operator.attributes["to"]
    if not isinstance(target, bytes):
        return None
    return [TensorType(TensorProto.DataType.Value(target.decode().upper()), operator.input_shape(0))]


def _legacy_concat(operator: Operator) -> list[TensorType] | None:
    """Concat before opset 4 may leave out its axis, the second dimension."""
    if "axis" in operator.attributes:
        return None
    shapes = [tensor.shape for tensor in operator.inputs]
    total = sum(shape[1] for shape in shapes)
    return [TensorType(operator.inputs[0].dtype, (shapes[0][0], total, *shapes[0][2:]))]


def _legacy_pad(operator: Operator) -> list[TensorType] | None:
    """Pad before opset 2: ``paddings``."""
    shape, pads = operator.input_shape(0), operator.attributes.get("paddings")
    if pads is None or shape is None:
        return None
    before, after = pads[: len(shape)], pads[len(shape) :]
    sizes = tuple(sum(parts) for parts in zip(shape, before, after, strict=True))
    return [TensorType(operator.inputs[0].dtype, sizes)]


def _legacy_upsample(operator: Operator) -> list[TensorType] | None:
    """Upsample before opset 7, and onnxruntime's own: factors in attributes."""
    shape, attributes = operator.input_shape(0), operator.attributes
    scales = attributes.get("scales")
    if scales is None and "height_scale" in attributes:
        scales = (1, 1, attributes["height_scale"], attributes["width_scale"])
    if scales is None or not shape:
        return None
    return [TensorType(operator.inputs[0].dtype, tuple(int(n * f) for n, f in zip(shape, scales, strict=True)))]


def _crop(operator: Operator) -> list[TensorType] | None:
    """The experimental operator of old converters: ``border`` is left, top, right, bottom."""
    shape, attributes = operator.input_shape(0), operator.attributes
    if not shape:
        return None
    left, top, right, bottom = attributes["border"]
    height, width = attributes.get("scale") or (shape[2] - top - bottom, shape[3] - left - right)
    return [TensorType(operator.inputs[0].dtype, (*shape[:2], height, width))]


def _reduce_by_attribute(operator: Operator) -> list[TensorType] | None:
    tensor = operator.inputs[0]
    if tensor.shape is None:
        return None
    axes = operator.attributes.get("axes")
    axes = range(tensor.rank) if axes is None else {axis % tensor.rank for axis in axes}
    keep = operator.attributes.get("keepdims", 1)
    shape = tuple(1 if a in axes else size for a, size in enumerate(tensor.shape) if keep or a not in axes)
    return [TensorType(tensor.dtype, shape)]


def _split_gelu(operator: Operator) -> list[TensorType] | None:
    tensor = operator.inputs[0]
    return None if not tensor.shape else [TensorType(tensor.dtype, (*tensor.shape[:-1], tensor.shape[-1] // 2))]


def _bitmask_dropout(operator: Operator) -> list[TensorType] | None:
    tensor = operator.inputs[0]
    mask = None if tensor.shape is None else (-(-tensor.elements // 32),)
    return [TensorType(tensor.dtype, tensor.shape), TensorType(TensorProto.UINT32, mask)]


def _distance_matrix(operator: Operator) -> list[TensorType] | None:
    (rows, _), (columns, _) = operator.input_shape(0), operator.input_shape(1)
    return [TensorType(operator.inputs[0].dtype, (rows, columns))]


def _expand_dims(operator: Operator) -> list[TensorType] | None:
    tensor = operator.inputs[0]
    axis = int(operator.inputs[1].value.reshape(-1)[0]) % (tensor.rank + 1)
    return [TensorType(tensor.dtype, (*tensor.shape[:axis], 1, *tensor.shape[axis:]))]


def _torch_embedding(operator: Operator) -> list[TensorType] | None:
    table, indices = operator.inputs[0], operator.input_shape(1)
    return [TensorType(table.dtype, (*indices, *table.shape[1:]))]


def _gather_block_quantized(operator: Operator) -> list[TensorType] | None:
    """Two four-bit rows of a table in one; what comes out has the type of the scales."""
    table, indices, attributes = operator.inputs[0], operator.input_shape(1), operator.attributes
    packed = 8 // attributes.get("bits", 4) if table.dtype == TensorProto.UINT8 else 1
    *rows, width = table.shape
    axis = attributes.get("gather_axis", 0) % table.rank
    shape = (*rows, width * packed)
    return [TensorType(operator.inputs[2].dtype, (*shape[:axis], *indices, *shape[axis + 1 :]))]


def _real_transform(operator: Operator) -> list[TensorType] | None:
    tensor, attributes = operator.inputs[0], operator.attributes
    *batch, points = tensor.shape
    kept = points // 2 + 1 if attributes.get("onesided", 1) else points
    return [TensorType(tensor.dtype, (*batch, kept, 2))]


def _inverse_real_transform(operator: Operator) -> list[TensorType] | None:
    tensor, attributes = operator.inputs[0], operator.attributes
    *batch, kept, _ = tensor.shape
    return [TensorType(tensor.dtype, (*batch, 2 * (kept - 1) if attributes.get("onesided", 1) else kept))]


def _crop_and_resize(operator: Operator) -> list[TensorType] | None:
    tensor, rois = operator.inputs[0], operator.input_shape(1)
    height, width = (int(size) for size in operator.inputs[3].value)
    return [TensorType(tensor.dtype, (rois[0], tensor.shape[1], height, width))]


def _relative_position_bias(operator: Operator) -> list[TensorType] | None:
    table = operator.inputs[0]
    queries, keys = (int(operator.inputs[i].value.reshape(-1)[0]) for i in (1, 2))
    return [TensorType(table.dtype, (1, table.shape[1], queries, keys))]


def _gated_relative_position_bias(operator: Operator) -> list[TensorType] | None:
    query, heads = operator.inputs[0], operator.attributes["num_heads"]
    batch, length = query.shape[:2] if operator.input(6) is None else operator.input_shape(6)
    return [TensorType(query.dtype, (batch, heads, length, length))]


def _unfold(operator: Operator) -> list[TensorType] | None:
    tensor, attributes = operator.inputs[0], operator.attributes
    axis, size = attributes.get("dim", -1) % tensor.rank, attributes["size"]
    windows = (tensor.shape[axis] - size) // attributes.get("step", 1) + 1
    return [TensorType(tensor.dtype, (*tensor.shape[:axis], windows, *tensor.shape[axis + 1 :], size))]


def _remove_padding(operator: Operator) -> list[TensorType] | None:
    """As if no token were padding."""
    tensor = operator.inputs[0]
    batch, length, width = tensor.shape
    shapes = ((batch, length), (batch + 1,), (1,))
    tokens = TensorType(tensor.dtype, (batch * length, width))
    return [tokens, *(TensorType(TensorProto.INT32, shape) for shape in shapes)]


def _restore_padding(operator: Operator) -> list[TensorType] | None:
    tensor, offsets = operator.inputs[0], operator.input_shape(1)
    return [TensorType(tensor.dtype, (*offsets, tensor.shape[1]))]


def _causal_convolution(operator: Operator) -> list[TensorType] | None:
    tensor, weight = operator.inputs[0], operator.input_shape(1)
    state = (*tensor.shape[:-1], weight[-1] - 1)
    return [TensorType(tensor.dtype, tensor.shape), TensorType(tensor.dtype, state)]


def _sequence_at(operator: Operator) -> list[TensorType] | None:
    item = item_at(operator)
    return None if item is None else [TensorType(item.dtype, item.shape)]


def _concat_from_sequence(operator: Operator) -> list[TensorType] | None:
    shape = joined_shape(operator)
    return None if shape is None else [TensorType(operator.inputs[0].items[0].dtype, shape)]


_MS = "com.microsoft."
_LIKE_FIRST = (
    "SimplifiedLayerNormalization Affine ImageScaler ParametricSoftplus Scale ScaledTanh ai.onnx.ml.Imputer "
    "ai.onnx.ml.Binarizer com.microsoft.nchwc.ReorderInput com.microsoft.nchwc.ReorderOutput"
).split() + [
    _MS + name
    for name in "BiasAdd BiasGelu BiasSoftmax BranchwiseRMSNorm FastGelu GatedAdd GatedRMSNorm Gelu GroupNorm Inverse "
    "LayerNormalization MoE MRotaryEmbedding QLinearLeakyRelu QLinearSigmoid QLinearSoftmax QMoE QOrderedGelu "
    "QOrderedLayerNormalization QuickGelu RotaryEmbedding ScaledSiLU SimplifiedLayerNormalization SwiGLU Trilu".split()
]
_LEGACY_BROADCAST = "Add And Div Equal Greater Less Mul Or Pow Sub Xor".split()

RULES: dict[str, Rule] = {
    **PRODUCT_RULES,
    **ATTENTION_RULES,
    **dict.fromkeys(_LIKE_FIRST, _like_first),
    **dict.fromkeys(_LEGACY_BROADCAST, _legacy_broadcast),
    **dict.fromkeys(["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"], _skip_layer_norm),
    **dict.fromkeys([_MS + "SkipLayerNormalization", _MS + "SkipSimplifiedLayerNormalization"], _skip_layer_norm),
    **dict.fromkeys([_MS + "ComplexMul", _MS + "ComplexMulConj"], _broadcast(0, 1)),
    **dict.fromkeys([_MS + "QLinearAdd", _MS + "QLinearMul"], _broadcast(0, 3)),
    **dict.fromkeys([_MS + "EmbedLayerNormalization", _MS + "QEmbedLayerNormalization"], _embed_layer_norm),
    **dict.fromkeys(["Dropout", _MS + "BiasDropout"], _dropout),
    **dict.fromkeys([_MS + "BitmaskDropout", _MS + "BitmaskBiasDropout"], _bitmask_dropout),
    **dict.fromkeys([_MS + "QLinearReduceMean", _MS + "ReduceSumInteger"], _reduce_by_attribute),
    **dict.fromkeys(["GatherND", _MS + "GatherND"], _gather_nd),
    **dict.fromkeys(["Upsample", _MS + "nchwc.Upsample"], _legacy_upsample),
    "Cast": _legacy_cast,
    "Concat": _legacy_concat,
    "ConcatFromSequence": _concat_from_sequence,
    "Crop": _crop,
    "Pad": _legacy_pad,
    "Reshape": _reshape_by_attribute,
    "SequenceAt": _sequence_at,
    _MS + "BiasSplitGelu": _split_gelu,
    _MS + "CausalConvWithState": _causal_convolution,
    _MS + "CDist": _distance_matrix,
    _MS + "CropAndResize": _crop_and_resize,
    _MS + "DequantizeLinear": _typed_like_first(TensorProto.FLOAT),
    _MS + "DequantizeWithOrder": _typed_like_first(TensorProto.FLOAT),
    _MS + "DynamicQuantizeLSTM": _dynamic_quantised_lstm,
    _MS + "ExpandDims": _expand_dims,
    _MS + "GatedRelativePositionBias": _gated_relative_position_bias,
    _MS + "GatherBlockQuantized": _gather_block_quantized,
    _MS + "GemmaRotaryEmbedding": _like(1, 3),
    _MS + "Irfft": _inverse_real_transform,
    _MS + "IsAllFinite": lambda operator: [TensorType(TensorProto.BOOL, ())],
    _MS + "MulInteger": _broadcast(0, 2, dtype=TensorProto.INT32),
    _MS + "NGramRepeatBlock": _like(1),
    _MS + "QLinearConcat": _quantised_concat,
    _MS + "QLinearWhere": _broadcast(0, 1, 4),
    _MS + "QuantizeLinear": lambda operator: [
        TensorType(operator.inputs[2].dtype if operator.input(2) else TensorProto.UINT8, operator.input_shape(0))
    ],
    _MS + "QuantizeWithOrder": _typed_like_first(TensorProto.INT8),
    _MS + "RelativePositionBias": _relative_position_bias,
    _MS + "RemovePadding": _remove_padding,
    _MS + "RestorePadding": _restore_padding,
    _MS + "Rfft": _real_transform,
    _MS + "SkipGroupNorm": _all_like_first,
    _MS + "TorchEmbedding": _torch_embedding,
    _MS + "UnfoldTensor": _unfold,
    **dict.fromkeys(
        ["ai.onnx.ml.LinearClassifier", "ai.onnx.ml.SVMClassifier", "ai.onnx.ml.TreeEnsembleClassifier"], _classifier
    ),
    **dict.fromkeys(
        ["ai.onnx.ml.LinearRegressor", "ai.onnx.ml.SVMRegressor", "ai.onnx.ml.TreeEnsembleRegressor"], _regressor
    ),
    **dict.fromkeys(["ai.onnx.ml.Scaler", "ai.onnx.ml.Normalizer"], _typed_like_first(TensorProto.FLOAT)),
    "ai.onnx.ml.TreeEnsemble": _tree_ensemble,
    "ai.onnx.ml.FeatureVectorizer": _feature_vectorizer,
    "ai.onnx.ml.ZipMap": _zip_map,
}
"""Operator -> its rule; a rule that returns None leaves the operator to ONNX's own inference."""
