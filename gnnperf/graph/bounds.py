"""Operators whose output depends on what is in a tensor: the largest that it can be."""

from __future__ import annotations

from onnx import TensorProto

from gnnperf.graph.tensor_types import Rule, TensorType
from gnnperf.graph.traced import Operator


def _non_zero(operator: Operator) -> list[TensorType] | None:
    source = operator.inputs[0]
    return None if source.shape is None else [TensorType(TensorProto.INT64, (max(1, source.rank), source.elements))]


def _non_maximum_suppression(operator: Operator) -> list[TensorType] | None:
    """Indices of boxes: all of them, or as many as the file allows for every class."""
    scores, most = operator.input_shape(1), operator.input(2)
    if not scores:
        return None
    batch, classes, boxes = scores
    kept = boxes if most is None or most.value is None else min(boxes, int(most.value.reshape(-1)[0]))
    return [TensorType(TensorProto.INT64, (batch * classes * kept, 3))]


def _compress(operator: Operator) -> list[TensorType] | None:
    source = operator.inputs[0]
    flat = "axis" not in operator.attributes
    return None if source.shape is None else [TensorType(source.dtype, (source.elements,) if flat else source.shape)]


def _unique(operator: Operator) -> list[TensorType] | None:
    source, axis = operator.inputs[0], operator.attributes.get("axis")
    if source.shape is None:
        return None
    count = source.elements if axis is None else source.shape[axis]
    indices = TensorType(TensorProto.INT64, (count,))
    return [TensorType(source.dtype, (count,) if axis is None else source.shape), indices, indices, indices]


LARGEST: dict[str, Rule] = {
    "Compress": _compress,
    "NonMaxSuppression": _non_maximum_suppression,
    "NonZero": _non_zero,
    "Unique": _unique,
    "com.microsoft.Unique": _unique,
}
"""Operator -> types of its outputs if nothing is left out."""
