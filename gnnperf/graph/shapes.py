"""Types and shapes of tensors: ONNX's own inference for the whole graph at once, then operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.shape_inference import infer_node_outputs, infer_shapes

from gnnperf.graph.dims import MAX_RANK, write_input_shapes
from gnnperf.graph.traced import STANDARD_DOMAINS, Operator, TracedTensor
from gnnperf.graph.values import tensor_value

Shape = tuple[int, ...]

# Not inferred for the whole graph at once, because the onnx package then ends the process: where a Slice, maybe in a
# body, meets a negative size, as it comes from a window larger than its input; where the input of others has no type.
_LEFT_TO_TRACING = frozenset(
    {"Slice", "If", "Loop", "Scan"}
    | {"DictVectorizer", "EyeLike", "GatherND", "LabelEncoder", "RegexFullMatch", "TreeEnsemble"}
)
_FIRST_OPSET_WITH_INFERENCE = 7  # of most operators; Upsample's is the last


@dataclass(slots=True)
class TensorType:
    """Element type and shape; the shape is None where it is not static, ``sequence`` marks what has none."""

    dtype: int
    shape: Shape | None
    sequence: bool = False


def tensor_type(proto: onnx.TypeProto, named: dict[str, int] | None = None) -> TensorType:
    """Read a type; dimensions in ``named`` take the value there."""
    if not proto.HasField("tensor_type"):
        return TensorType(TensorProto.UNDEFINED, None, sequence=proto.WhichOneof("value") is not None)
    tensor = proto.tensor_type
    if not tensor.HasField("shape") or len(tensor.shape.dim) > MAX_RANK:
        return TensorType(tensor.elem_type, None)
    shape = []
    for dim in tensor.shape.dim:
        size = dim.dim_value
        if not size and not dim.HasField("dim_value"):
            size = named.get(dim.dim_param, -1) if named else -1
        if size < 0:
            return TensorType(tensor.elem_type, None)
        shape.append(size)
    return TensorType(tensor.elem_type, tuple(shape))


def infer_types(model: onnx.ModelProto, input_shapes: Mapping[str, Shape | None]) -> dict[str, TensorType]:
    """Types of the main graph's tensors at these input shapes, by ONNX's shape inference.

    Without its data propagation, which can run for ever on a damaged file: the content of small tensors is followed
    while tracing instead.
    What the file says about inner tensors and outputs is ignored, because it may hold for other input sizes. Nothing
    is raised: what cannot be inferred is missing or has no shape.
    """
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    graph = bare.graph
    write_input_shapes(graph, input_shapes)
    del graph.value_info[:]
    for value in graph.output:
        value.type.Clear()
    if any(node.op_type in _LEFT_TO_TRACING for node in graph.node):
        nodes = [node for node in graph.node if node.op_type not in _LEFT_TO_TRACING]
        del graph.node[:]
        graph.node.extend(nodes)
    kept = []
    for tensor in graph.initializer:
        # An integer initializer whose payload is gone would be taken for an empty shape: make it an input instead.
        if tensor.data_type in (TensorProto.INT64, TensorProto.INT32) and tensor_value(tensor) is None:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        else:
            kept.append(tensor)
    if len(kept) < len(graph.initializer):
        del graph.initializer[:]
        graph.initializer.extend(kept)
    try:
        graph = infer_shapes(bare).graph
    except Exception:  # whatever inference stumbles over, operator by operator may still work
        return {}
    return {value.name: tensor_type(value.type) for values in (graph.value_info, graph.output) for value in values}


class OperatorInference:
    """Infer the outputs of one operator from the types, and where known the content, of its inputs."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._opsets = list(model.opset_import)
        self._versions = {o.domain if o.domain != "ai.onnx" else "": o.version for o in model.opset_import}

    def infer(self, operator: Operator) -> list[TensorType] | None:
        """Types of the outputs in order, None if they do not follow from what is known."""
        rule = _RULES.get(operator.op)
        if rule is not None:
            try:
                types = rule(operator)
            except (TypeError, IndexError, KeyError, ValueError, ZeroDivisionError):
                types = None
            if types is not None:
                return [_without_negative_sizes(kind) for kind in types]
        standard = None if operator.op == "GatherND" else _as_standard(operator)
        if standard is None:
            return None
        node, inputs = standard
        domain = "" if node.domain in STANDARD_DOMAINS else node.domain
        version = self._versions.get(domain, onnx.defs.onnx_opset_version() if not domain else 1)
        types, data = {}, {}
        for name, tensor in zip(node.input, inputs, strict=True):
            if tensor is None:
                continue
            types[name] = _type_proto(tensor)
            if tensor.value is not None and tensor.value.dtype != object:
                data[name] = numpy_helper.from_array(np.ascontiguousarray(tensor.value).reshape(tensor.value.shape))
        try:
            schema = _inferring_schema(node.op_type, version, domain)
            if schema.since_version > version:
                node = _with_attributes_of(schema, node)
            inferred = infer_node_outputs(schema, node, types, data, opset_imports=self._opsets)
        except Exception:  # a schema that does not exist, or an operator that does not fit its inputs
            return None
        types = [tensor_type(inferred[name]) if name in inferred else TensorType(0, None) for name in node.output]
        if operator.op in _SHAPED_AS and is_channels_last(operator) and types[0].shape:
            batch, channels, *space = types[0].shape
            types[0].shape = (batch, *space, channels)
        return types


@cache
def _inferring_schema(op_type: str, version: int, domain: str) -> onnx.defs.OpSchema:
    """The operator's schema at an opset; where that is too old to infer shapes, the next one that does."""
    schema = onnx.defs.get_schema(op_type, version, domain)
    while not schema.has_type_and_shape_inference_function and version < _FIRST_OPSET_WITH_INFERENCE:
        version += 1
        schema = onnx.defs.get_schema(op_type, version, domain)
    return schema


def _with_attributes_of(schema: onnx.defs.OpSchema, node: onnx.NodeProto) -> onnx.NodeProto:
    """The node without attributes that the schema does not know."""
    known = onnx.NodeProto(op_type=node.op_type, domain=node.domain, input=node.input, output=node.output)
    known.attribute.extend(attribute for attribute in node.attribute if attribute.name in schema.attributes)
    return known


def _without_negative_sizes(kind: TensorType) -> TensorType:
    """The type; without a shape where a broken attribute makes a size negative."""
    return kind if not kind.shape or min(kind.shape) >= 0 else TensorType(kind.dtype, None)


def _type_proto(tensor: TracedTensor) -> onnx.TypeProto:
    proto = onnx.TypeProto()
    proto.tensor_type.elem_type = tensor.dtype
    if tensor.shape is not None:
        proto.tensor_type.shape.SetInParent()
        for size in tensor.shape:
            proto.tensor_type.shape.dim.add(dim_value=size)
    return proto


# Fused and quantised operators of onnxruntime that are shaped as a standard operator: (its name, which inputs it has).
_SHAPED_AS: dict[str, tuple[str, tuple[int, ...]]] = {
    "com.microsoft.FusedConv": ("Conv", (0, 1, 2)),
    "com.microsoft.NhwcFusedConv": ("Conv", (0, 1, 2)),
    "com.microsoft.nchwc.Conv": ("Conv", (0, 1, 2)),
    "com.microsoft.nchwc.MaxPool": ("MaxPool", (0,)),
    "com.microsoft.nchwc.AveragePool": ("AveragePool", (0,)),
    "com.microsoft.nchwc.GlobalAveragePool": ("GlobalAveragePool", (0,)),
    "com.microsoft.nchwc.GlobalMaxPool": ("GlobalMaxPool", (0,)),
    "com.microsoft.FusedGemm": ("Gemm", (0, 1, 2)),
    "com.microsoft.NhwcMaxPool": ("MaxPool", (0,)),
    "com.microsoft.QLinearAveragePool": ("AveragePool", (0,)),
    "com.microsoft.QLinearGlobalAveragePool": ("GlobalAveragePool", (0,)),
    "com.microsoft.QLinearReduceMean": ("ReduceMean", (0,)),
    "com.microsoft.Pad": ("Pad", (0, 1, 2)),
    "com.microsoft.ConvTransposeWithDynamicPads": ("ConvTranspose", (0, 1)),
}


_CHANNELS_LAST = frozenset({"com.microsoft.NhwcFusedConv", "com.microsoft.NhwcMaxPool"})


def _as_standard(operator: Operator) -> tuple[onnx.NodeProto, list[TracedTensor | None]] | None:
    """The node itself, or the standard operator with the same output shapes."""
    node, inputs = operator.node, operator.inputs
    if operator.op not in _SHAPED_AS:
        return (node, inputs) if "." not in operator.op or operator.op.startswith("ai.onnx") else None
    op_type, positions = _SHAPED_AS[operator.op]
    present = [i for i in positions if i < len(inputs)]
    alias = onnx.NodeProto(op_type=op_type, output=node.output, input=[node.input[i] for i in present])
    alias.attribute.extend(node.attribute)
    alias = _with_attributes_of(onnx.defs.get_schema(op_type), alias)
    tensors = [inputs[i] for i in present]
    if is_channels_last(operator) and tensors[0] is not None and tensors[0].shape:
        batch, *space, channels = tensors[0].shape
        tensors[0] = TracedTensor(tensors[0].name, tensors[0].dtype, (batch, channels, *space))
    return alias, tensors


def is_channels_last(operator: Operator) -> bool:
    """Whether a convolution or pooling has its channels in the last dimension."""
    return operator.op in _CHANNELS_LAST or bool(operator.attributes.get("channels_last"))


# Rules of our own: operators outside ai.onnx, and the few standard ones that its inference leaves open.


def _like_first(operator: Operator) -> list[TensorType] | None:
    tensor = operator.inputs[0]
    return [TensorType(tensor.dtype, tensor.shape)] + [TensorType(tensor.dtype, None)] * (len(operator.outputs) - 1)


def _all_like_first(operator: Operator) -> list[TensorType] | None:
    tensor = operator.inputs[0]
    return [TensorType(tensor.dtype, tensor.shape)] * len(operator.outputs)


def _dropout(operator: Operator) -> list[TensorType] | None:
    tensor = operator.inputs[0]
    return [TensorType(tensor.dtype, tensor.shape), TensorType(TensorProto.BOOL, tensor.shape)]


def _skip_layer_norm(operator: Operator) -> list[TensorType] | None:
    tensor = operator.inputs[0]
    statistics = None if tensor.shape is None else (*tensor.shape[:-1], 1)
    same = TensorType(tensor.dtype, tensor.shape)
    return [same, TensorType(TensorProto.FLOAT, statistics), TensorType(TensorProto.FLOAT, statistics), same]


def _broadcast(*positions: int) -> Callable[[Operator], list[TensorType] | None]:
    def rule(operator: Operator) -> list[TensorType] | None:
        shapes = [operator.input_shape(i) for i in positions]
        if None in shapes:
            return None
        return [TensorType(operator.inputs[0].dtype, np.broadcast_shapes(*shapes))]

    return rule


def _matmul(operator: Operator) -> list[TensorType] | None:
    a, b = operator.input_shape(0), operator.input_shape(1)
    if not a or not b or min(len(a), len(b)) < 2:
        return None
    if operator.attributes.get("transA"):
        a = (*a[:-2], a[-1], a[-2])
    if operator.attributes.get("transB"):
        b = (*b[:-2], b[-1], b[-2])
    return [TensorType(operator.inputs[0].dtype, (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1]))]


def _quantised_matmul(dtype: int) -> Callable[[Operator], list[TensorType] | None]:
    def rule(operator: Operator) -> list[TensorType] | None:
        types = _matmul(operator)
        return None if types is None else [TensorType(dtype, types[0].shape)]

    return rule


def _quantised_gemm(operator: Operator) -> list[TensorType] | None:
    a, b = operator.input_shape(0), operator.input_shape(3)
    if a is None or b is None:
        return None
    rows, columns = a[1 if operator.attributes.get("transA") else 0], b[0 if operator.attributes.get("transB") else 1]
    dtype = operator.inputs[0].dtype if operator.input(7) else TensorProto.FLOAT
    return [TensorType(dtype, (rows, columns))]


def _block_quantised_matmul(operator: Operator) -> list[TensorType] | None:
    tensor = operator.inputs[0]
    return None if tensor.shape is None else [TensorType(tensor.dtype, (*tensor.shape[:-1], operator.attributes["N"]))]


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


def _float_like_first(operator: Operator) -> list[TensorType] | None:
    return [TensorType(TensorProto.FLOAT, operator.input_shape(0))]


def _zip_map(operator: Operator) -> list[TensorType] | None:
    return [TensorType(TensorProto.UNDEFINED, None, sequence=True)]


def _feature_vectorizer(operator: Operator) -> list[TensorType] | None:
    shapes = [operator.input_shape(i) for i in range(len(operator.inputs))]
    if any(not shape for shape in shapes):
        return None
    return [TensorType(TensorProto.FLOAT, (shapes[0][0], sum(prod(shape[1:]) for shape in shapes)))]


_RULES: dict[str, Callable[[Operator], list[TensorType] | None]] = {
    "Dropout": _dropout,
    "GatherND": _gather_nd,
    "Reshape": _reshape_by_attribute,
    "SimplifiedLayerNormalization": _like_first,
    "SkipLayerNormalization": _skip_layer_norm,
    "SkipSimplifiedLayerNormalization": _skip_layer_norm,
    "com.microsoft.SkipLayerNormalization": _skip_layer_norm,
    "com.microsoft.SkipSimplifiedLayerNormalization": _skip_layer_norm,
    "com.microsoft.SimplifiedLayerNormalization": _like_first,
    "com.microsoft.LayerNormalization": _like_first,
    "com.microsoft.GroupNorm": _like_first,
    "com.microsoft.SkipGroupNorm": _all_like_first,
    "com.microsoft.Gelu": _like_first,
    "com.microsoft.FastGelu": _like_first,
    "com.microsoft.BiasGelu": _like_first,
    "com.microsoft.QuickGelu": _like_first,
    "com.microsoft.BiasSoftmax": _like_first,
    "com.microsoft.BiasDropout": _dropout,
    "com.microsoft.BiasAdd": _like_first,
    "com.microsoft.RotaryEmbedding": _like_first,
    "com.microsoft.QLinearSigmoid": _like_first,
    "com.microsoft.QLinearLeakyRelu": _like_first,
    "com.microsoft.QLinearSoftmax": _like_first,
    "com.microsoft.QLinearAdd": _broadcast(0, 3),
    "com.microsoft.QLinearMul": _broadcast(0, 3),
    "com.microsoft.QLinearConcat": _quantised_concat,
    "com.microsoft.nchwc.ReorderInput": _like_first,
    "com.microsoft.nchwc.ReorderOutput": _like_first,
    "com.microsoft.FusedMatMul": _matmul,
    "com.microsoft.TransposeMatMul": _matmul,
    "com.microsoft.QGemm": _quantised_gemm,
    "com.microsoft.DynamicQuantizeMatMul": _quantised_matmul(TensorProto.FLOAT),
    "com.microsoft.MatMulIntegerToFloat": _quantised_matmul(TensorProto.FLOAT),
    "com.microsoft.MatMulInteger16": _quantised_matmul(TensorProto.INT32),
    "com.microsoft.MatMulNBits": _block_quantised_matmul,
    "com.microsoft.MatMulBnb4": _block_quantised_matmul,
    "com.microsoft.Attention": _attention,
    "com.microsoft.QAttention": _attention,
    "com.microsoft.MultiHeadAttention": _multi_head_attention,
    "com.microsoft.GroupQueryAttention": _group_query_attention,
    "com.microsoft.DynamicQuantizeLSTM": _dynamic_quantised_lstm,
    "com.microsoft.EmbedLayerNormalization": _embed_layer_norm,
    "com.microsoft.QuantizeLinear": lambda operator: [
        TensorType(operator.inputs[2].dtype if operator.input(2) else TensorProto.UINT8, operator.input_shape(0))
    ],
    "com.microsoft.DequantizeLinear": _float_like_first,
    "ai.onnx.ml.LinearClassifier": _classifier,
    "ai.onnx.ml.SVMClassifier": _classifier,
    "ai.onnx.ml.TreeEnsembleClassifier": _classifier,
    "ai.onnx.ml.LinearRegressor": _regressor,
    "ai.onnx.ml.SVMRegressor": _regressor,
    "ai.onnx.ml.TreeEnsembleRegressor": _regressor,
    "ai.onnx.ml.Scaler": _float_like_first,
    "ai.onnx.ml.Normalizer": _float_like_first,
    "ai.onnx.ml.Imputer": _like_first,
    "ai.onnx.ml.Binarizer": _like_first,
    "ai.onnx.ml.FeatureVectorizer": _feature_vectorizer,
    "ai.onnx.ml.ZipMap": _zip_map,
}
