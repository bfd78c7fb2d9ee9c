"""Peak memory as the sum of its parts, and whether it fits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from gnnperf.conditions import Conditions, Optimizer, Phase, Precision
from gnnperf.devices import Device
from gnnperf.devices.device import DeviceKind
from gnnperf.graph import Node, OpClass, OpGraph
from gnnperf.memory.liveness import inference_peak_bytes, training_peak_bytes

_WIDTH = {Precision.FP32: 4, Precision.FP16: 2, Precision.FP64: 8}
_ELEMENT_BYTES = {"float64": 8, "float16": 2, "bfloat16": 2}

_STATES = {
    Optimizer.MOMENTUM: 1,
    Optimizer.ADAM: 2,
    Optimizer.ADADELTA: 2,
    Optimizer.ADAGRAD: 1,
    Optimizer.RMSPROP: 1,
}
"""Numbers that an optimizer of torch.optim remembers for each weight."""

_UPDATE_COPIES = {Optimizer.ADAM: 1, Optimizer.ADADELTA: 2, Optimizer.ADAGRAD: 1, Optimizer.RMSPROP: 1}
"""Copies of all weights that an update of torch.optim makes on its way, as its foreach kernels do."""

_LIBRARY_WORKSPACE_BYTES = 8 * 2**20  # cuBLAS, as PyTorch sets it up
_RUNTIME_BYTES = 450 * 2**20  # a CUDA context with the kernels of its libraries
_CONVOLUTIONS = frozenset({OpClass.CONV, OpClass.GROUPED_CONV, OpClass.CONV_TRANSPOSE})
_WORKSPACE_LIMIT_BYTES = 2**30


@dataclass(frozen=True)
class MemoryEstimate:
    """Peak memory of one run, and where it goes.

    Attributes:
        weights_bytes: weights and buffers; in a training step at FP16, single-precision weights and their copy.
        gradients_bytes: of the weights.
        optimizer_bytes: what the optimizer remembers of earlier steps.
        activations_bytes: most that lives at the same time, inputs, what is kept for the backward part, and gradients
            of activations included.
        workspace_bytes: scratch memory of the operator, or the update, that needs most beyond the activations.
        runtime_bytes: the framework's context on the device, before any tensor.
        peak_bytes: sum of all parts.
        device_bytes: the device's memory; None where it is not a fixed size.
        fits: whether the peak is within it; None where that is not known.
    """

    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    workspace_bytes: int
    runtime_bytes: int
    peak_bytes: int
    device_bytes: int | None
    fits: bool | None

    def to_dict(self) -> dict:
        """Plain data for JSON."""
        return asdict(self)


def estimate_memory(graph: OpGraph, device: Device, conditions: Conditions) -> MemoryEstimate:
    """Peak memory of a graph on a device.

    The forward and backward parts of a training step count as the whole step: they need the same memory.

    Args:
        graph: the operators, at their batch size.
        device: gives the memory to fit into.
        conditions: phase, precision and optimizer count; stacks are all taken to work as PyTorch does.
    """
    training = conditions.phase != Phase.INFERENCE
    scale = _WIDTH[conditions.precision] / 4
    parameters = sum(_parameter_bytes(node) for node in graph.nodes)
    constants = sum(_constant_bytes(node) for node in graph.nodes)
    # Mixed precision computes in half of the width, but trains weights of the full one.
    trained = parameters * max(scale, 1.0) if training else parameters * scale
    copies = parameters * scale if training and scale < 1 else 0
    peak = training_peak_bytes(graph) if training else inference_peak_bytes(graph)
    activations = round(peak * _activation_scale(graph, scale))
    update = _UPDATE_COPIES.get(conditions.optimizer, 0) * trained if conditions.phase == Phase.TRAINING else 0
    scratch = _workspace_bytes(graph.nodes, scale) if device.kind == DeviceKind.GPU else 0
    parts = {
        "weights_bytes": round(trained + copies + constants * scale),
        "gradients_bytes": round(trained) if training else 0,
        "optimizer_bytes": round(_STATES.get(conditions.optimizer, 0) * trained) if training else 0,
        "activations_bytes": activations,
        "workspace_bytes": round(max(scratch, update - activations)),
        "runtime_bytes": _RUNTIME_BYTES if device.kind == DeviceKind.GPU else 0,
    }
    total = sum(parts.values())
    capacity = round(device.memory_gb * 2**30) if device.memory_gb else None
    return MemoryEstimate(
        **parts, peak_bytes=total, device_bytes=capacity, fits=None if not capacity else total <= capacity
    )


def _parameter_bytes(node: Node) -> int:
    """Bytes of the trainable weights that no earlier operator has; quantised ones are as small as they are stored."""
    whole = node.parameters * _ELEMENT_BYTES.get(node.dtype, 4)
    return whole if node.op_class == OpClass.EMBEDDING else min(whole, node.weight_bytes // node.repeats)


def _constant_bytes(node: Node) -> int:
    """Bytes that are not trained: running statistics, tables that are added or concatenated."""
    if node.op_class == OpClass.BATCH_NORM or not node.parameters:
        shared = node.op_class in _CONVOLUTIONS or node.op_class in (OpClass.GEMM, OpClass.EMBEDDING)
        return 0 if shared else node.weight_bytes // node.repeats - _parameter_bytes(node)
    return 0


def _activation_scale(graph: OpGraph, scale: float) -> float:
    """The precision's width over the file's, on average over what is written: other types than float32 stay."""
    written = sum(node.output_bytes for node in graph.nodes)
    single = sum(node.output_bytes for node in graph.nodes if node.dtype == "float32")
    return 1.0 if not written else (single * scale + written - single) / written


def _workspace_bytes(nodes: Iterable[Node], scale: float) -> float:
    """Scratch memory of the convolution that wants most, within the limit that libraries are given."""
    wanted = max(
        (
            node.input_bytes + node.output_bytes
            for node in nodes
            if node.op_class in _CONVOLUTIONS and max(node.kernel, default=1) > 1
        ),
        default=0,
    )
    return _LIBRARY_WORKSPACE_BYTES + min(wanted * scale, _WORKSPACE_LIMIT_BYTES)
