"""Run a network whose file fixes the batch at another batch size."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from gnnperf.graph.trace import Trace

_TARGET_SHAPE_POSITION = {"Reshape": 1, "Expand": 1, "Resize": 3}


def scale_batch_constants(model: onnx.ModelProto, traced: Trace, own: int, other: int) -> onnx.ModelProto:
    """Return a copy whose constants that spell out batch ``own`` spell out ``other``.

    These are target shapes that start with the batch, and tensors of one entry per batch item that are concatenated
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
            value, source = target.value, operator.inputs[0]
            if value is None or value.ndim != 1 or not value.size or value[0] != own:
                continue
            if node.op_type == "Reshape" and not _carries_batch(source.shape, value, own):
                continue
            value = value.copy()
            value[0] = other
            node.input[position] = _add_constant(graph, f"{node.output[0]}:shape", value)
        elif node.op_type == "Concat":
            for position, tensor in enumerate(operator.inputs):
                if tensor.constant and tensor.shape and tensor.shape[0] == own and operator.attributes["axis"]:
                    name = f"{node.output[0]}:part{position}"
                    graph.initializer.add(name=name, data_type=tensor.dtype, dims=(other, *tensor.shape[1:]))
                    node.input[position] = name
    return changed


def follows_batch(before: Trace, after: Trace, own: int, other: int) -> bool:
    """Whether every output grew with the batch on one axis, and nothing lost its shape."""
    for (_, old), (_, new) in zip(before.outputs, after.outputs, strict=True):
        if old.shape is None:
            continue
        if new.shape is None or len(old.shape) != len(new.shape):
            return False
        differing = [(a, b) for a, b in zip(old.shape, new.shape, strict=True) if a != b]
        if len(differing) != 1 or differing[0][0] * other != differing[0][1] * own:
            return False
    return len(before.operators) == len(after.operators) and all(
        new.shape is not None or old.shape is None
        for a, b in zip(before.operators, after.operators, strict=True)
        for old, new in zip(a.outputs, b.outputs, strict=True)
    )


def _carries_batch(shape: tuple[int, ...] | None, target: np.ndarray, own: int) -> bool:
    """Whether a reshaped tensor has the batch in front; with batch 1 nothing but its rank can tell."""
    return bool(shape) and (shape[0] == own or own > 1) and len(shape) > 1


def _add_constant(graph: onnx.GraphProto, name: str, value: np.ndarray) -> str:
    graph.initializer.append(numpy_helper.from_array(value, name))
    return name
