"""Tensors and operators of a network while it is traced: between the ONNX file and the OpGraph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

STANDARD_DOMAINS = ("", "ai.onnx")

DTYPE_NAMES = {number: name.lower() for name, number in TensorProto.DataType.items()} | {
    TensorProto.UNDEFINED: "unknown",
    TensorProto.FLOAT: "float32",
    TensorProto.DOUBLE: "float64",
}
"""ONNX element type -> numpy's name, or ONNX's own in lower case where numpy has none."""

_ELEMENT_BITS = {
    TensorProto.FLOAT: 32, TensorProto.DOUBLE: 64, TensorProto.FLOAT16: 16, TensorProto.BFLOAT16: 16,
    TensorProto.INT64: 64, TensorProto.UINT64: 64, TensorProto.INT32: 32, TensorProto.UINT32: 32,
    TensorProto.INT16: 16, TensorProto.UINT16: 16, TensorProto.INT8: 8, TensorProto.UINT8: 8, TensorProto.BOOL: 8,
    TensorProto.COMPLEX64: 64, TensorProto.COMPLEX128: 128, TensorProto.STRING: 64,
}  # fmt: skip


def _element_bits(dtype: int) -> int:
    bits = _ELEMENT_BITS.get(dtype)
    if bits is None:
        name = TensorProto.DataType.Name(dtype) if dtype in TensorProto.DataType.values() else ""
        digits = "".join(c for c in name.removeprefix("U").removeprefix("FLOAT").removeprefix("INT")[:1] if c.isdigit())
        bits = _ELEMENT_BITS[dtype] = int(digits) if digits else 32  # FLOAT8E4M3FN -> 8, UINT4 -> 4
    return bits


@dataclass(slots=True, eq=False)
class TracedTensor:
    """One tensor: its type, its shape, who writes it, and its content where that is small and known."""

    name: str
    dtype: int = TensorProto.UNDEFINED
    shape: tuple[int, ...] | None = None
    producer: Operator | None = None  # None: a graph input or a constant
    constant: bool = False  # known before the network runs: weights, and everything computed from them alone
    value: np.ndarray | None = None
    stored_bytes: int | None = None  # of a constant that is kept in another form, such as quantised
    root: str = ""  # the weight that a constant was made of
    sequence: bool = False  # a sequence, map or optional, which has no shape
    items: tuple[TracedTensor, ...] | None = None  # of a sequence, where they are known
    item: TracedTensor | None = None  # of a sequence: what every item looks like, where that is all that is known

    @property
    def elements(self) -> int:
        """Number of elements, 0 where the shape is unknown."""
        return prod(self.shape) if self.shape is not None else 0

    @property
    def size_bytes(self) -> int:
        """Size in memory, 0 where the shape is unknown."""
        if self.stored_bytes is not None:
            return self.stored_bytes
        return (self.elements * _element_bits(self.dtype) + 7) // 8

    @property
    def rank(self) -> int:
        """Number of dimensions, 0 where the shape is unknown."""
        return len(self.shape or ())

    @property
    def resolved(self) -> bool:
        """Whether the size is known, or does not matter."""
        return self.shape is not None or self.sequence

    @property
    def dtype_name(self) -> str:
        """Element type by numpy's name."""
        return DTYPE_NAMES.get(self.dtype, "unknown")


@dataclass(eq=False, slots=True)
class Operator:
    """One operator that runs: a node of the file with its tensors. An input that is left out is None."""

    node: onnx.NodeProto
    op: str  # op_type, with the domain as a prefix where that is not ai.onnx
    inputs: list[TracedTensor | None]
    outputs: list[TracedTensor]
    repeats: int = 1
    body_tensors: Sequence[TracedTensor] = ()  # what a control-flow operator waits for
    _attributes: dict[str, Any] | None = None

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes by name, as Python values."""
        if self._attributes is None:
            self._attributes = {
                attribute.name: helper.get_attribute_value(attribute) for attribute in self.node.attribute
            }
        return self._attributes

    def input(self, index: int) -> TracedTensor | None:
        """The input at a position, None if it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def input_shape(self, index: int) -> tuple[int, ...] | None:
        """Shape of the input at a position, None if that or the input is missing."""
        tensor = self.input(index)
        return tensor.shape if tensor is not None else None

    @property
    def output_shape(self) -> tuple[int, ...] | None:
        """Shape of the first output."""
        return self.outputs[0].shape if self.outputs else None


def qualified_name(node: onnx.NodeProto) -> str:
    """``Conv``, or ``com.microsoft.FusedConv`` for a node outside ai.onnx."""
    return node.op_type if node.domain in STANDARD_DOMAINS else f"{node.domain}.{node.op_type}"
