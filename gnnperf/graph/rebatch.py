"""Run a network whose file fixes the batch at another batch size."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from gnnperf.graph.trace import Trace

_TARGET_SHAPE_POSITION = {"Reshape": 1, "Expand": 1, "Resize": 3}


def scale_batch_constants(model: onnx.ModelProto, traced: Trace, own: int, other: int) -> onnx.ModelProto:
    """Return a copy whose constants that spell out batch ``own`` spell out ``other``.

    These are target shapes that hold the batch, and tensors of one entry per batch item that are concatenated
    to activations (class tokens).
    """
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    operator_of = {operator.node.output[0]: operator for operator in traced.operators if operator.node.output}
    for node in graph.node:
        operator = operator_of.get(node.output[0]) if node.output else None
        if operator is None:
            continue
        position = _TARGET_SHAPE_POSITION.get(node.op_type)
        if position is not None and (target := operator.input(position)) is not None:
            axis = None
            if target.value is not None and target.value.ndim == 1:
                axis = _batch_axis(target.value, own, operator.input_shape(0))
            if axis is not None:
                value = target.value.copy()
                value[axis] = value[axis] * other // own
                name = f"{node.output[0]}:shape"
                graph.initializer.append(numpy_helper.from_array(value, name))
                node.input[position] = name
        elif node.op_type == "Concat":
            for position, tensor in enumerate(operator.inputs):
                if tensor.constant and tensor.shape and tensor.shape[0] == own and operator.attributes["axis"]:
                    name = f"{node.output[0]}:part{position}"
                    graph.initializer.add(name=name, data_type=tensor.dtype, dims=(other, *tensor.shape[1:]))
                    node.input[position] = name
    return changed


def follows_batch(before: Trace, after: Trace, own: int, other: int) -> bool:
    """Whether all outputs grew with the batch on one axis, and every inner tensor grew with it or stayed as it was."""
    if len(before.operators) != len(after.operators):
        return False
    for (_, old), (_, new) in zip(before.outputs, after.outputs, strict=True):
        if old.shape is None:
            continue
        if new.shape is None or len(old.shape) != len(new.shape):
            return False
        differing = [(a, b) for a, b in zip(old.shape, new.shape, strict=True) if a != b]
        if len(differing) != 1 or differing[0][0] * other != differing[0][1] * own:
            return False
    for old_operator, new_operator in zip(before.operators, after.operators, strict=True):
        for old, new in zip(old_operator.outputs, new_operator.outputs, strict=True):
            if old.shape is None:
                continue
            if new.shape is None or new.elements not in (old.elements, old.elements * other // own):
                return False
    return True


def _batch_axis(target: np.ndarray, own: int, source: tuple[int, ...] | None) -> int | None:
    """The dimension of a target shape that holds the batch, or the batch times something; None where nothing does.

    A guess, which :func:`follows_batch` checks. A -1 takes the batch in if nothing before it can.
    """
    sizes = target.tolist()
    if not sizes or sizes[0] <= 0:
        return None
    if -1 in sizes:
        return 0 if sizes[0] == own or (own > 1 and sizes[0] % own == 0) else None
    if own > 1 and source and source[0] == own and sizes[0] % own == 0:
        return 0  # the outermost dimension stays outermost
    if own in sizes:
        return sizes.index(own)
    return next((axis for axis, size in enumerate(sizes) if size and size % own == 0), None)
