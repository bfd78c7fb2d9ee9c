"""Element type and shape of a tensor as ONNX writes them down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import onnx
from onnx import TensorProto

from gnnperf.graph.dims import MAX_RANK
from gnnperf.graph.traced import Operator

Shape = tuple[int, ...]


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


Rule = Callable[[Operator], "list[TensorType] | None"]
"""Types of an operator's outputs in order, None where they do not follow; it may raise on a broken operator."""
