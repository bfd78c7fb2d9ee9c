"""Give every free input dimension a size: what the user says, else the batch, else a default that is reported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from operator import index
from typing import SupportsIndex

import onnx
from onnx import TensorProto

from gnnperf.errors import ModelFileError

DEFAULT_DIMS = {"image": 224, "sequence": 128, "samples": 16000, "frames": 16, "channels": 3, "other": 1}
"""Size that a free dimension takes by what it looks like: image sides, tokens or time steps, audio samples, video
frames, image channels, anything else."""

AUDIO_CHUNK = 512
"""Samples that a streaming audio network takes at a time; tried where a network does not accept a second of audio."""

MAX_DIM = 2**31 - 1
MAX_RANK = 64
MAX_TENSOR_ELEMENTS = 2**45

_NAME_PATTERNS = (
    ("batch", re.compile(r"batch|^(n|b|bs|bsz)$", re.I)),
    ("samples", re.compile(r"sample|audio|wave|wav\b", re.I)),
    ("image", re.compile(r"height|width|image|^(h|w|img_?[hw]|[hw]_?in)$", re.I)),
    ("sequence", re.compile(r"seq|time|token|step|len|past|total|frame|^(t|s|l)$", re.I)),
    ("channels", re.compile(r"channel|^c$", re.I)),
)
_AUDIO_INPUT = re.compile(r"audio|wav|sample|speech|sound|signal|pcm|input|^x$", re.I)
_FLOAT_TYPES = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)


@dataclass
class InputDims:
    """The inputs of a network with a size for every dimension.

    Attributes:
        shapes: input name -> shape; None for an input whose rank is unknown.
        batch: the batch size that the shapes hold for.
        named: value of every named dimension, for shapes inside the file that mention it.
        assumptions: dimensions that were free and were not given, with the value they got.
        batch_axes: input name -> the axis that carries the batch.
        fixed_batch: batch size that the file prescribes, None where its batch is free.
        kinds: what every free dimension was taken for, "batch" or a key of :data:`DEFAULT_DIMS`.
    """

    shapes: dict[str, tuple[int, ...] | None] = field(default_factory=dict)
    batch: int = 1
    named: dict[str, int] = field(default_factory=dict)
    assumptions: dict[str, int] = field(default_factory=dict)
    batch_axes: dict[str, int] = field(default_factory=dict)
    fixed_batch: int | None = None
    kinds: dict[str, str] = field(default_factory=dict)


def bind_dims(
    graph: onnx.GraphProto,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, tuple[int, ...]] | None = None,
    defaults: Mapping[str, int] = DEFAULT_DIMS,
) -> InputDims:
    """Choose sizes for all dimensions of all inputs; the graph is left as it is.

    A free dimension without a name is called after its input, ``x[2]``, in ``dims`` as in the assumptions.

    Raises:
        ModelFileError: a size is out of range, or names a dimension or an input that the file does not have.
    """
    batch = None if batch is None else _size(batch, "batch size")
    dims = {name: _size(size, f"dimension '{name}'") for name, size in (dims or {}).items()}
    input_shapes = {
        name: tuple(_size(size, f"a dimension of input '{name}'") for size in shape)
        for name, shape in (input_shapes or {}).items()
    }
    declared = {value.name: _declared_shape(value) for value in graph.input if value.type.HasField("tensor_type")}
    _check_input_shapes(declared, input_shapes)
    types = {value.name: value.type.tensor_type.elem_type for value in graph.input}

    kinds: dict[str, str] = {}
    for name, shape in declared.items():
        for axis, dim in enumerate(shape or ()):
            if isinstance(dim, str) and dim not in kinds:
                kinds[dim] = _kind(name, shape, axis, types[name])
    free = set(kinds)
    if unknown := sorted(set(dims) - free):
        known = ", ".join(f"'{name}'" for name in sorted(free)) or "none"
        raise ModelFileError(f"the model has no free dimension '{unknown[0]}' (free ones: {known})")

    result = InputDims(kinds=kinds)
    result.batch_axes, result.fixed_batch = _batch_axes(declared, kinds)
    result.batch = _choose_batch(batch, declared, kinds, dims, input_shapes, result)
    for name, size in dims.items():
        result.named[name] = size
    for name, given in input_shapes.items():
        for dim, size in zip(declared[name] or (), given, strict=False):
            if isinstance(dim, str):
                if dims.get(dim, size) != size:
                    raise ModelFileError(f"two sizes are asked for of dimension '{dim}': {dims[dim]} and {size}")
                result.named[dim] = size
    pending = []
    for dim, kind in kinds.items():
        if dim in result.named:
            continue
        if kind == "batch":
            result.named[dim] = result.batch
            if batch is None:
                result.assumptions[dim] = result.batch
        elif "+" in dim or re.search("total", dim, re.I):
            pending.append(dim)
        else:
            result.named[dim] = result.assumptions[dim] = defaults[kind]
    total = sum(size for name, size in result.named.items() if re.search(r"past|seq", name, re.I))
    for dim in pending:
        result.named[dim] = result.assumptions[dim] = _sum_of_parts(dim, result.named, total)

    for name, shape in declared.items():
        if name in input_shapes:
            result.shapes[name] = tuple(input_shapes[name])
        elif shape is None:
            result.shapes[name] = None
        else:
            result.shapes[name] = tuple(result.named[dim] if isinstance(dim, str) else dim for dim in shape)
        _check_size(name, result.shapes[name])
    return result


def write_input_shapes(graph: onnx.GraphProto, shapes: Mapping[str, tuple[int, ...] | None]) -> None:
    """Fix the inputs of a graph to these shapes."""
    for value in graph.input:
        if (shape := shapes.get(value.name)) is not None:
            dims = value.type.tensor_type.shape.dim
            del dims[:]
            value.type.tensor_type.shape.SetInParent()
            for size in shape:
                dims.add(dim_value=size)


def _declared_shape(value: onnx.ValueInfoProto) -> tuple[int | str, ...] | None:
    """Sizes as the file has them; a free dimension is its name, or ``input[axis]`` if it has none."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    shape: list[int | str] = []
    for axis, dim in enumerate(tensor.shape.dim):
        if dim.dim_value > 0:
            shape.append(dim.dim_value)
        elif dim.dim_param and dim.dim_param not in ("?", "-1", "None"):
            shape.append(dim.dim_param)
        else:
            shape.append(f"{value.name}[{axis}]")
    return tuple(shape)


def _kind(input_name: str, shape: tuple[int | str, ...], axis: int, dtype: int) -> str:
    """What a free dimension is, by its name, else by its place."""
    name, rank = str(shape[axis]), len(shape)
    if not name.startswith(f"{input_name}["):
        for kind, pattern in _NAME_PATTERNS:
            if pattern.search(name):
                # Networks on raw audio call the samples of their only free axis a sequence, too.
                audio = kind == "sequence" and rank == 2 and dtype in _FLOAT_TYPES and _AUDIO_INPUT.search(input_name)
                return "samples" if audio else kind
    if axis == 0:
        return "batch"
    if rank == 3 and axis == 1 and isinstance(shape[0], int) and isinstance(shape[2], int):
        return "batch"  # a recurrent state: [layers, batch, features]
    if rank >= 4:
        channels_last = isinstance(shape[-1], int) and shape[-1] <= 4
        if axis == (rank - 1 if channels_last else 1):
            return "channels"
        return "frames" if rank == 5 and axis == (1 if channels_last else 2) else "image"
    if rank == 3 and axis == 2 and shape[1] in (1, 2):
        return "samples"
    if rank == 2 and dtype in _FLOAT_TYPES:
        return "samples" if _AUDIO_INPUT.search(input_name) else "other"
    return "sequence" if rank in (2, 3) else "other"


def _batch_axes(
    declared: dict[str, tuple[int | str, ...] | None], kinds: dict[str, str]
) -> tuple[dict[str, int], int | None]:
    """The axis of every input that carries the batch, and the batch size if the file fixes it."""
    axes: dict[str, int] = {}
    for name, shape in declared.items():
        for axis, dim in enumerate(shape or ()):
            if isinstance(dim, str) and kinds[dim] == "batch":
                axes[name] = axis
                break
    if axes:
        return axes, None
    fixed: int | None = None
    for name, shape in declared.items():
        if not shape or not isinstance(shape[0], int):
            continue
        if fixed is None:
            fixed = shape[0]
        if shape[0] == fixed:
            axes[name] = 0
        elif len(shape) == 3 and shape[1] == fixed:
            axes[name] = 1
    return axes, fixed


def _choose_batch(batch, declared, kinds, dims, input_shapes, result: InputDims) -> int:
    given = {size for dim, size in dims.items() if kinds[dim] == "batch"}
    for name, shape in input_shapes.items():
        axis = result.batch_axes.get(name, 0 if declared[name] is None and shape else None)
        if axis is not None:
            given.add(shape[axis])
    if batch is not None:
        given.add(batch)
    if len(given) > 1:
        raise ModelFileError(f"two batch sizes are asked for: {' and '.join(map(str, sorted(given)))}")
    return given.pop() if given else (result.fixed_batch or 1)


def _check_input_shapes(declared, input_shapes: Mapping[str, tuple[int, ...]]) -> None:
    for name, shape in input_shapes.items():
        if name not in declared:
            known = ", ".join(f"'{known}'" for known in declared) or "none"
            raise ModelFileError(f"the model has no input '{name}' (inputs: {known})")
        if declared[name] is not None and len(declared[name]) != len(shape):
            raise ModelFileError(f"input '{name}' has {len(declared[name])} dimensions, the shape given {len(shape)}")


def _size(size: SupportsIndex, label: str) -> int:
    try:
        size = index(size)
    except TypeError:
        raise ModelFileError(f"{label} must be a whole number, not {size!r}") from None
    if not 1 <= size <= MAX_DIM:
        raise ModelFileError(f"{label} must be between 1 and {MAX_DIM}, not {size}")
    return size


def _check_size(name: str, shape: tuple[int, ...] | None) -> None:
    if len(shape or ()) > MAX_RANK:  # before they are multiplied: a product of thousands takes minutes
        raise ModelFileError(f"input '{name}' has more than {MAX_RANK} dimensions")
    if prod(shape or ()) > MAX_TENSOR_ELEMENTS:
        raise ModelFileError(f"input '{name}' would have more than 2**45 elements: give smaller dimensions")


def _sum_of_parts(dim: str, named: dict[str, int], total: int) -> int:
    """Value of ``past + sequence``, or of a total length: what was seen before plus what comes now, ``total``."""
    if "+" in dim:
        parts = [part.strip() for part in dim.split("+")]
        if all(part in named or part.isdecimal() for part in parts):
            return sum(named[part] if part in named else int(part) for part in parts)
    return total or DEFAULT_DIMS["sequence"]
