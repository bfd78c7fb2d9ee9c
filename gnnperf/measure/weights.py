"""Random weights for files that come without: what a runtime needs to execute them, at the cost of the real ones."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import onnx
from onnx import helper

from gnnperf.errors import MeasureError

_LIMIT_BYTES = 2**31 - 2**20  # of a protobuf message
_PAYLOADS = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")
_MOST_DRAWN = 2**20  # larger weights repeat themselves, which nothing notices, and are there in no time
# Input positions that hold a factor (1 keeps the activations as they are) or an offset (0 does), by operator.
_ONES = {"BatchNormalization": (1, 4), "LayerNormalization": (1,), "InstanceNormalization": (1,),
         "GroupNormalization": (1,), "RMSNormalization": (1,), "Mul": (0, 1), "Div": (0, 1)}  # fmt: skip
_ZEROS = {"BatchNormalization": (2, 3), "LayerNormalization": (2,), "InstanceNormalization": (2,),
          "GroupNormalization": (2,), "Conv": (2,), "ConvTranspose": (2,), "Gemm": (2,), "Add": (0, 1),
          "Sub": (0, 1)}  # fmt: skip


def fill_absent_weights(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """Give every initializer without content seeded values, in place; those with content stay.

    Matrices and kernels are He-normal, so that activations neither vanish nor overflow (numbers close to zero are slow
    on processors); scales and variances are 1, offsets and whole numbers 0.

    Raises:
        MeasureError: the weights would not fit into one ONNX file.
    """
    absent = [tensor for tensor in model.graph.initializer if _is_absent(tensor)]
    size_bytes = model.ByteSize() + sum(_size_bytes(tensor) for tensor in absent)
    if size_bytes > _LIMIT_BYTES:
        raise MeasureError(
            f"{size_bytes / 1e9:.1f} GB of weights exceed the 2 GB of an ONNX model: it cannot be run here"
        )
    roles = dict(_roles(model.graph))
    generator = np.random.default_rng(seed)
    for tensor in absent:
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
        tensor.raw_data = _values(tensor, roles.get(tensor.name, "matrix"), generator).tobytes()
    return model


def _is_absent(tensor: onnx.TensorProto) -> bool:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return True  # what could be read was read when the file was loaded
    return math.prod(tensor.dims) > 0 and not any(getattr(tensor, name) for name in _PAYLOADS)


def _size_bytes(tensor: onnx.TensorProto) -> int:
    return math.prod(tensor.dims) * _numpy_type(tensor).itemsize


def _numpy_type(tensor: onnx.TensorProto) -> np.dtype:
    return np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))


def _roles(graph: onnx.GraphProto) -> Iterator[tuple[str, str]]:
    """``one`` or ``zero`` for the weights that keep activations as they are."""
    for node in graph.node:
        for role, table in (("one", _ONES), ("zero", _ZEROS)):
            for position in table.get(node.op_type, ()):
                if position < len(node.input):
                    yield node.input[position], role


def _values(tensor: onnx.TensorProto, role: str, generator: np.random.Generator) -> np.ndarray:
    shape, dtype = tuple(tensor.dims), _numpy_type(tensor)
    if dtype.kind not in "fV" or role == "zero":  # V: bfloat16 and its like
        return np.zeros(shape, dtype)
    if role == "one" or len(shape) < 2:
        return np.ones(shape, dtype)
    deviation = np.float32(math.sqrt(2 / math.prod(shape[1:])))
    drawn = generator.standard_normal(min(math.prod(shape), _MOST_DRAWN), np.float32) * deviation
    return np.resize(drawn.astype(dtype), shape)
