"""Peak memory as the sum of its parts, and whether it fits."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

from gnnperf.conditions import Conditions, Optimizer, Phase, Precision
from gnnperf.devices import Device
from gnnperf.devices.device import DeviceKind
from gnnperf.graph import Node, OpClass, OpGraph
from gnnperf.memory.liveness import inference_peak_bytes, training_peak_bytes
from gnnperf.memory.storages import Storages, storages

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
_SHARED_IF_UNCOUNTED = _CONVOLUTIONS | {OpClass.GEMM, OpClass.EMBEDDING}  # an earlier operator has the same weights
_WORKSPACE_LIMIT_BYTES = 2**30

_USABLE = 0.9
"""Part of a device's memory that tensors get: allocators round sizes up and leave holes. Read off docs/memory.md: what
networks other than VGG trained with on a 24 GB GPU takes at most 0.92 of it by this estimate, what ran out of memory at
least 0.92."""


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
        fits: whether the peak is within what allocators can use of it, nine tenths; None where that is not known.
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
        return {item.name: getattr(self, item.name) for item in fields(self)}


def estimate_memory(graph: OpGraph, device: Device, conditions: Conditions) -> MemoryEstimate:
    """Peak memory of a graph on a device.

    The forward and backward parts of a training step count as the whole step: they need the same memory.

    Args:
        graph: the operators, at their batch size.
        device: gives the memory to fit into.
        conditions: phase, precision and optimizer count; stacks are all taken to work as PyTorch does.
    """
    return MemoryModel(graph).estimate(device, conditions)


class MemoryModel:
    """What the memory of one graph depends on, worked out once for all devices and conditions."""

    def __init__(self, graph: OpGraph) -> None:
        self._graph = graph
        parameters = constants = written = single = scratch = 0
        for node in graph.nodes:
            if node.parameters or node.weight_bytes:
                trained = _parameter_bytes(node)
                parameters += trained
                constants += _constant_bytes(node, trained)
            written += node.output_bytes
            if node.dtype == "float32":
                single += node.output_bytes
            if node.op_class in _CONVOLUTIONS and max(node.kernel, default=1) > 1:
                scratch = max(scratch, node.input_bytes + node.output_bytes)
        self._parameters, self._constants, self._scratch = parameters, constants, scratch
        self._single_share = single / written if written else 0.0

    @cached_property
    def _storages(self) -> Storages:
        return storages(self._graph)

    @cached_property
    def _inference_peak(self) -> int:
        return inference_peak_bytes(self._graph, self._storages)

    @cached_property
    def _training_peak(self) -> int:
        return training_peak_bytes(self._graph, self._storages)

    def estimate(self, device: Device, conditions: Conditions) -> MemoryEstimate:
        """See :func:`estimate_memory`."""
        training = conditions.phase != Phase.INFERENCE
        scale = _WIDTH[conditions.precision] / 4
        # Mixed precision computes in half of the width, but trains weights of the full one.
        trained = self._parameters * max(scale, 1.0) if training else self._parameters * scale
        copies = self._parameters * scale if training and scale < 1 else 0
        # Other types than float32 stay as they are, whatever the precision.
        width = self._single_share * scale + 1 - self._single_share
        activations = round((self._training_peak if training else self._inference_peak) * width)
        scratch = update = 0
        if device.kind == DeviceKind.GPU:
            scratch = _LIBRARY_WORKSPACE_BYTES + min(self._scratch * scale, _WORKSPACE_LIMIT_BYTES)
        if conditions.phase == Phase.TRAINING:
            update = _UPDATE_COPIES.get(conditions.optimizer, 0) * trained
        parts = {
            "weights_bytes": round(trained + copies + self._constants * scale),
            "gradients_bytes": round(trained) if training else 0,
            "optimizer_bytes": round(_STATES.get(conditions.optimizer, 0) * trained) if training else 0,
            "activations_bytes": activations,
            "workspace_bytes": round(max(scratch, update - activations)),
            "runtime_bytes": _RUNTIME_BYTES if device.kind == DeviceKind.GPU else 0,
        }
        peak = sum(parts.values())
        capacity = round(device.memory_gb * 2**30) if device.memory_gb else None
        fits = peak <= _USABLE * capacity if capacity else None
        return MemoryEstimate(**parts, peak_bytes=peak, device_bytes=capacity, fits=fits)


def _parameter_bytes(node: Node) -> int:
    """Bytes of the trainable weights that no earlier operator has; quantised ones are as small as they are stored."""
    whole = node.parameters * _ELEMENT_BYTES.get(node.dtype, 4)
    return whole if node.op_class == OpClass.EMBEDDING else min(whole, node.weight_bytes // node.repeats)


def _constant_bytes(node: Node, trained: int) -> int:
    """Bytes that are not trained: running statistics, tables that are added or concatenated."""
    if node.op_class == OpClass.BATCH_NORM or not (node.parameters or node.op_class in _SHARED_IF_UNCOUNTED):
        return node.weight_bytes // node.repeats - trained
    return 0
