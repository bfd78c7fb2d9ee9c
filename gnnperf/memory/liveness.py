"""How much memory activations take at most: each is freed once its last reader has run."""

from __future__ import annotations

from gnnperf.graph import OpGraph
from gnnperf.memory.saved import kept_by
from gnnperf.memory.storages import OUTSIDE, Storages, storages

# Frameworks overwrite the input of these where nothing else needs it.
_IN_PLACE = frozenset({"Relu", "Clip", "LeakyRelu", "Elu", "HardSwish", "HardSigmoid", "Sigmoid", "Tanh"})


def inference_peak_bytes(graph: OpGraph) -> int:
    """Most bytes of activations that live at the same time in a forward pass that keeps nothing; inputs included."""
    held = storages(graph)
    return graph.input_bytes + _forward_peak(graph, held, [0] * len(graph.nodes), set())[0]


def training_peak_bytes(graph: OpGraph) -> int:
    """The same for a forward and a backward pass, with the gradients of activations; inputs included.

    Backward, the gradient of a tensor lives from the first of its readers to its writer, in reverse order; what was
    kept is freed once all that kept it have run.
    """
    held = storages(graph)
    kept, extra_bytes = kept_by(graph, held)
    tensors = {holder for holders in kept for holder in holders if holder != OUTSIDE}
    forward_peak, live = _forward_peak(graph, held, extra_bytes, tensors)
    return graph.input_bytes + max(forward_peak, _backward_peak(held, kept, extra_bytes, live))


def _forward_peak(graph: OpGraph, held: Storages, extra_bytes: list[int], kept: set[int]) -> tuple[int, int]:
    """Most bytes, and bytes at the end; ``kept`` tensors are never freed, nor ``extra_bytes``."""
    last_reader = _last_readers(held)
    live = peak = 0
    for index, node in enumerate(graph.nodes):
        done = [source for source in held.inputs[index] if source != OUTSIDE and last_reader[source] == index]
        free = sum(held.size_bytes[source] for source in done if source not in kept)
        if held.holder[index] == index:
            live += held.size_bytes[index] + extra_bytes[index]
        overwritten = free if node.op_type in _IN_PLACE else 0
        peak = max(peak, live - min(overwritten, held.size_bytes[index]))
        live -= free
    return peak, live


def _last_readers(held: Storages) -> list[int]:
    """``[N]`` the last operator that reads what an operator wrote; beyond the end for what nobody reads: an output."""
    count = len(held.inputs)
    last = [count] * count
    for index, sources in enumerate(held.inputs):
        if held.holder[index] != index:
            continue  # a view reads nothing; its own readers read the memory behind it
        for source in sources:
            if source != OUTSIDE:
                last[source] = index
    return last


def _backward_peak(held: Storages, kept: list[list[int]], extra_bytes: list[int], live: int) -> int:
    first_keeper: dict[int, int] = {}
    for index in reversed(range(len(kept))):
        first_keeper.update((holder, index) for holder in kept[index] if holder != OUTSIDE)
    has_gradient = [False] * len(kept)
    peak = live
    for index in reversed(range(len(kept))):
        holder = held.holder[index]
        if holder != index:
            continue
        for tensor in (index, *held.inputs[index]):
            if tensor != OUTSIDE and not has_gradient[tensor]:
                has_gradient[tensor] = True
                live += held.size_bytes[tensor]
        peak = max(peak, live)
        live -= held.size_bytes[index] + extra_bytes[index]
        live -= sum(held.size_bytes[tensor] for tensor in kept[index] if first_keeper.get(tensor) == index)
    return peak
