"""Types and shapes of tensors: ONNX's own inference for the whole graph at once, then operator by operator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.shape_inference import infer_node_outputs, infer_shapes

from gnnperf.graph.dims import write_input_shapes
from gnnperf.graph.shape_rules import RULES
from gnnperf.graph.tensor_types import Shape, TensorType, tensor_type
from gnnperf.graph.traced import STANDARD_DOMAINS, Operator, TracedTensor
from gnnperf.graph.values import tensor_value

# Not inferred for the whole graph at once, because the onnx package then ends the process: where a Slice, maybe in a
# body, meets a negative size, as it comes from a window larger than its input; where the input of others has no type.
_LEFT_TO_TRACING = frozenset(
    {"Slice", "If", "Loop", "Scan", "SequenceMap"}
    | {"DictVectorizer", "EyeLike", "GatherND", "LabelEncoder", "RegexFullMatch", "TreeEnsemble"}
)
_FIRST_OPSET_WITH_INFERENCE = 7  # of most operators; Upsample's is the last


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
        self.versions = {o.domain if o.domain != "ai.onnx" else "": o.version for o in model.opset_import}

    def infer(self, operator: Operator) -> list[TensorType] | None:
        """Types of the outputs in order, None if they do not follow from what is known."""
        rule = RULES.get(operator.op)
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
        version = self.versions.get(domain, onnx.defs.onnx_opset_version() if not domain else 1)
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
    "com.microsoft.GridSample": ("GridSample", (0, 1)),
    "com.microsoft.MaxpoolWithMask": ("MaxPool", (0,)),
    "com.microsoft.NhwcConv": ("Conv", (0, 1, 2)),
    "com.microsoft.QLinearConv": ("Conv", (0, 3, 8)),
    "com.microsoft.Range": ("Range", (0, 1, 2)),
    "com.microsoft.Pad": ("Pad", (0, 1, 2)),
    "com.microsoft.ConvTransposeWithDynamicPads": ("ConvTranspose", (0, 1)),
}


_CHANNELS_LAST = frozenset({"com.microsoft.NhwcConv", "com.microsoft.NhwcFusedConv", "com.microsoft.NhwcMaxPool"})


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
