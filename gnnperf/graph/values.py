"""Evaluate shape arithmetic: the content of small tensors that follows from shapes and constants."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from gnnperf.graph.dims import MAX_RANK
from gnnperf.graph.sequences import sequence_length
from gnnperf.graph.traced import Operator

MAX_VALUE_ELEMENTS = 1024
"""Larger tensors are weights or activations, whose content no shape depends on."""

_USUAL_TYPES = {
    onnx.TensorProto.FLOAT: (np.dtype("<f4"), "float_data"),
    onnx.TensorProto.INT64: (np.dtype("<i8"), "int64_data"),
}

Evaluator = Callable[[Operator, list[Any]], Any]


def tensor_value(tensor: onnx.TensorProto) -> np.ndarray | None:
    """Content of a tensor, None if it is large or was not kept."""
    if len(tensor.dims) > MAX_RANK:
        return None
    elements = prod(tensor.dims)
    if elements > MAX_VALUE_ELEMENTS or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return None
    usual = _USUAL_TYPES.get(tensor.data_type)
    try:
        if usual is not None:
            # As numpy_helper.to_array does it, in a quarter of the time: most tensors of a file are small weights.
            dtype, field = usual
            if tensor.HasField("raw_data"):
                value = np.frombuffer(tensor.raw_data, dtype)
                return value.reshape(tensor.dims) if value.size == elements else None
            if elements and not getattr(tensor, field):
                return None
        value = numpy_helper.to_array(tensor)
    except (TypeError, KeyError, ValueError, RuntimeError, AttributeError):
        return None
    return value if value.size == elements else None


def constant_value(node: onnx.NodeProto) -> np.ndarray | onnx.TensorProto | None:
    """Content of a Constant node; the bare TensorProto where its payload is unknown."""
    for attribute in node.attribute:
        if attribute.name == "value":
            value = tensor_value(attribute.t)
            return attribute.t if value is None else value
        if attribute.name == "sparse_value":
            sparse = attribute.sparse_tensor
            return onnx.TensorProto(dims=sparse.dims, data_type=sparse.values.data_type)
        if attribute.name in ("value_int", "value_ints"):
            return np.array(helper.get_attribute_value(attribute), np.int64)
        if attribute.name in ("value_float", "value_floats"):
            return np.array(helper.get_attribute_value(attribute), np.float32)
        if attribute.name in ("value_string", "value_strings"):
            return np.array(helper.get_attribute_value(attribute), object)
    return None


def evaluate(operator: Operator) -> list[np.ndarray] | None:
    """Content of the outputs if it follows from what is known, None if not."""
    if operator.op in _FROM_STRUCTURE:
        value = _FROM_STRUCTURE[operator.op](operator)
        return None if value is None else [value]
    if operator.op in _FROM_SHAPE:
        shape = operator.input_shape(0)
        return None if shape is None else [_FROM_SHAPE[operator.op](operator, shape)]
    evaluator = _EVALUATORS.get(operator.op)
    if evaluator is None:
        return None
    values = []
    for tensor in operator.inputs:
        if tensor is not None and tensor.value is None:
            return None
        values.append(None if tensor is None else tensor.value)
    if not values or values[0] is None:
        return None
    try:
        if operator.op in _BROADCASTING and _broadcast_elements(values) > MAX_VALUE_ELEMENTS:
            return None
        with np.errstate(all="ignore"):
            result = evaluator(operator, values)
    except (ValueError, TypeError, IndexError, KeyError, ZeroDivisionError, OverflowError, MemoryError):
        return None
    results = [np.asarray(item) for item in (result if isinstance(result, list) else [result])]
    return results if all(item.size <= MAX_VALUE_ELEMENTS for item in results) else None


def _broadcast_elements(values: list[Any]) -> int:
    return prod(np.broadcast_shapes(*(value.shape for value in values if value is not None)))


def _shape(operator: Operator, shape: tuple[int, ...]) -> np.ndarray:
    start, end = operator.attributes.get("start", 0), operator.attributes.get("end", len(shape))
    return np.array(shape[slice(start, end)], np.int64)


def _size(operator: Operator, shape: tuple[int, ...]) -> np.ndarray:
    return np.array(prod(shape), np.int64)


def _has_element(operator: Operator) -> np.ndarray | None:
    """An optional input that is left out, or is a tensor, tells; a real optional does not."""
    tensor = operator.input(0)
    if tensor is None:
        return np.array(False)
    return np.array(True) if tensor.shape is not None or tensor.items is not None else None


_FROM_STRUCTURE: dict[str, Callable[[Operator], np.ndarray | None]] = {
    "OptionalHasElement": _has_element,
    "SequenceLength": sequence_length,
}
_FROM_SHAPE: dict[str, Callable[[Operator, tuple[int, ...]], np.ndarray]] = {"Shape": _shape, "Size": _size}


def _axes(operator: Operator, values: list[Any]) -> tuple[int, ...] | None:
    """Axes of Squeeze, Unsqueeze and reductions: an attribute in old opsets, the second input in new ones."""
    if len(values) > 1 and values[1] is not None:
        return tuple(int(axis) for axis in np.atleast_1d(values[1]))
    axes = operator.attributes.get("axes")
    return None if axes is None else tuple(axes)


def _squeeze(operator: Operator, values: list[Any]) -> np.ndarray:
    return np.squeeze(values[0], _axes(operator, values))


def _unsqueeze(operator: Operator, values: list[Any]) -> np.ndarray:
    return np.expand_dims(values[0], _axes(operator, values))


def _reshape(operator: Operator, values: list[Any]) -> np.ndarray:
    data, target = values[0], values[1] if len(values) > 1 else operator.attributes["shape"]
    keep_zero = operator.attributes.get("allowzero", 0)
    return data.reshape([data.shape[i] if d == 0 and not keep_zero else int(d) for i, d in enumerate(target)])


def _slice(operator: Operator, values: list[Any]) -> np.ndarray:
    attributes, data = operator.attributes, values[0]
    if len(values) > 1:
        starts, ends = values[1], values[2]
        axes = values[3] if len(values) > 3 and values[3] is not None else range(len(starts))
        steps = values[4] if len(values) > 4 and values[4] is not None else [1] * len(starts)
    else:
        starts, ends = attributes["starts"], attributes["ends"]
        axes, steps = attributes.get("axes", range(len(starts))), [1] * len(starts)
    index = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        start, end, step = int(start), int(end), int(step)
        # Running backwards, an end before the first element means "to the very start".
        stop = None if step < 0 and end < -data.shape[axis] else end
        index[int(axis)] = slice(start, stop, step)
    return data[tuple(index)]


def _split(operator: Operator, values: list[Any]) -> list[np.ndarray]:
    axis = operator.attributes.get("axis", 0)
    sizes = values[1] if len(values) > 1 else operator.attributes.get("split")
    if sizes is None:
        step = -(-values[0].shape[axis] // len(operator.outputs))
        sizes = [step] * len(operator.outputs)
    return np.split(values[0], np.cumsum(sizes)[:-1], axis)


def _cast(operator: Operator, values: list[Any]) -> np.ndarray:
    return values[0].astype(helper.tensor_dtype_to_np_dtype(operator.attributes["to"]))


def _constant_of_shape(operator: Operator, values: list[Any]) -> np.ndarray:
    shape = tuple(int(d) for d in values[0])
    if np.prod([float(d) for d in shape]) > MAX_VALUE_ELEMENTS:
        raise ValueError("too large to be kept")
    fill = operator.attributes.get("value")
    fill = np.zeros(1, np.float32) if fill is None else numpy_helper.to_array(fill)
    return np.full(shape, fill.reshape(-1)[0], fill.dtype)


def _range(operator: Operator, values: list[Any]) -> np.ndarray:
    start, limit, step = (value.reshape(())[()] for value in values)
    if (float(limit) - float(start)) / float(step) > MAX_VALUE_ELEMENTS:
        raise ValueError("too large to be kept")
    return np.arange(start, limit, step, values[0].dtype)


def _expand(operator: Operator, values: list[Any]) -> np.ndarray:
    shape = np.broadcast_shapes(values[0].shape, tuple(int(d) for d in values[1]))
    return np.broadcast_to(values[0], shape)


def _tile(operator: Operator, values: list[Any]) -> np.ndarray:
    if np.prod(values[1].astype(float)) * values[0].size > MAX_VALUE_ELEMENTS:
        raise ValueError("too large to be kept")
    return np.tile(values[0], values[1])


def _divide(operator: Operator, values: list[Any]) -> np.ndarray:
    a, b = values
    if not np.issubdtype(a.dtype, np.integer):
        return a / b
    quotient = np.abs(a) // np.abs(b)  # ONNX truncates towards zero
    return (np.sign(a) * np.sign(b) * quotient).astype(a.dtype)


def _mod(operator: Operator, values: list[Any]) -> np.ndarray:
    return (np.fmod if operator.attributes.get("fmod") else np.mod)(*values)


def _unary(function: Callable[[Any], Any]) -> Evaluator:
    return lambda operator, values: np.asarray(function(values[0])).astype(values[0].dtype)


def _binary(function: Callable[[Any, Any], Any]) -> Evaluator:
    return lambda operator, values: function(values[0], values[1])


def _variadic(function: Callable[[Any, Any], Any]) -> Evaluator:
    def evaluator(operator: Operator, values: list[Any]) -> Any:
        result = values[0]
        for value in values[1:]:
            result = function(result, value)
        return result

    return evaluator


def _reduction(function: Callable[..., Any]) -> Evaluator:
    def evaluator(operator: Operator, values: list[Any]) -> np.ndarray:
        axes = _axes(operator, values)
        if axes is None and operator.attributes.get("noop_with_empty_axes"):
            return values[0]
        keep = bool(operator.attributes.get("keepdims", 1))
        return np.asarray(function(values[0], axis=axes or None, keepdims=keep)).astype(values[0].dtype)

    return evaluator


_EVALUATORS: dict[str, Evaluator] = {
    "Identity": lambda operator, values: values[0],
    "Cast": _cast,
    "CastLike": lambda operator, values: values[0].astype(values[1].dtype),
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Reshape": _reshape,
    "Flatten": lambda operator, values: values[0].reshape(
        int(np.prod(values[0].shape[: operator.attributes.get("axis", 1)])), -1
    ),
    "Transpose": lambda operator, values: np.transpose(values[0], operator.attributes.get("perm")),
    "Concat": lambda operator, values: np.concatenate(values, operator.attributes["axis"]),
    "Gather": lambda operator, values: np.take(values[0], values[1].astype(int), operator.attributes.get("axis", 0)),
    "GatherElements": lambda operator, values: np.take_along_axis(
        values[0], values[1], operator.attributes.get("axis", 0)
    ),
    "Slice": _slice,
    "Split": _split,
    "Expand": _expand,
    "Tile": _tile,
    "Range": _range,
    "ConstantOfShape": _constant_of_shape,
    "NonZero": lambda operator, values: np.array(np.nonzero(np.atleast_1d(values[0])), np.int64),
    "Where": lambda operator, values: np.where(*values),
    "Add": _binary(np.add),
    "Sub": _binary(np.subtract),
    "Mul": _binary(np.multiply),
    "Div": _divide,
    "Mod": _mod,
    "Pow": lambda operator, values: np.power(*values).astype(values[0].dtype),
    "Max": _variadic(np.maximum),
    "Min": _variadic(np.minimum),
    "Sum": _variadic(np.add),
    "Equal": _binary(np.equal),
    "Less": _binary(np.less),
    "LessOrEqual": _binary(np.less_equal),
    "Greater": _binary(np.greater),
    "GreaterOrEqual": _binary(np.greater_equal),
    "And": _binary(np.logical_and),
    "Or": _binary(np.logical_or),
    "Xor": _binary(np.logical_xor),
    "Not": lambda operator, values: np.logical_not(values[0]),
    "Neg": _unary(np.negative),
    "Abs": _unary(np.abs),
    "Sign": _unary(np.sign),
    "Floor": _unary(np.floor),
    "Ceil": _unary(np.ceil),
    "Round": _unary(np.round),
    "Sqrt": _unary(np.sqrt),
    "Reciprocal": _unary(np.reciprocal),
    "Relu": _unary(lambda x: np.maximum(x, 0)),
    "Clip": lambda operator, values: np.clip(
        values[0],
        operator.attributes.get("min") if len(values) < 2 else values[1],
        operator.attributes.get("max") if len(values) < 3 else values[2],
    ),
    "CumSum": lambda operator, values: np.cumsum(values[0], int(values[1].reshape(-1)[0]), values[0].dtype),
    "ReduceProd": _reduction(np.prod),
    "ReduceSum": _reduction(np.sum),
    "ReduceMax": _reduction(np.max),
    "ReduceMin": _reduction(np.min),
}
_BROADCASTING = frozenset(
    "Add Sub Mul Div Mod Pow Max Min Sum Where Clip Equal Less LessOrEqual Greater GreaterOrEqual And Or Xor".split()
)
"""Operators that can make much out of little: three vectors of 1,024 make 2**30 elements."""
