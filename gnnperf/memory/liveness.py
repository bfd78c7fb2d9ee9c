"""How much memory activations take at most: each is freed once its last reader has run."""

from __future__ import annotations

from gnnperf.graph import OpGraph
from gnnperf.memory.saved import kept_by
from gnnperf.memory.storages import OUTSIDE, Storages

# Frameworks overwrite the input of these where nothing else needs it.
_IN_PLACE = frozenset({"Relu", "Clip", "LeakyRelu", "Elu", "HardSwish", "HardSigmoid", "Sigmoid", "Tanh"})


def inference_peak_bytes(graph: OpGraph, held: Storages) -> int:
    """Most bytes of activations that live at the same time in a forward pass that keeps nothing; inputs included."""
    return graph.input_bytes + _forward_peak(graph, held, None, set())[0]


def training_peak_bytes(graph: OpGraph, held: Storages) -> int:
    """The same for a forward and a backward pass, with the gradients of activations; inputs included.

    Backward, the gradient of a tensor lives from the first of its readers to its writer, in reverse order; what was
    kept is freed once all that kept it have run.
    """
    kept, extra_bytes = kept_by(graph, held)
    tensors = {holder for holders in kept for holder in holders}
    forward_peak, live = _forward_peak(graph, held, extra_bytes, tensors)
    return graph.input_bytes + max(forward_peak, _backward_peak(held, kept, extra_bytes, live))


def _forward_peak(graph: OpGraph, held: Storages, extra_bytes: list[int] | None, kept: set[int]) -> tuple[int, int]:
    """Most bytes, and bytes at the end; ``kept`` tensors are never freed, nor ``extra_bytes``."""
    last_reader, size_bytes = _last_readers(held), held.size_bytes
    live = peak = 0
    for index, (node, sources) in enumerate(zip(graph.nodes, held.inputs, strict=True)):
        if held.holder[index] != index:
            continue  # a view neither takes memory nor frees it
        free = 0
        for source in sources:
            if last_reader[source] == index and source not in kept:
                free += size_bytes[source]
        live += size_bytes[index]
        if extra_bytes is not None:
            live += extra_bytes[index]
        used = live - min(free, size_bytes[index]) if free and node.op_type in _IN_PLACE else live
        if used > peak:
            peak = used
        live -= free
    return peak, live


def _last_readers(held: Storages) -> list[int]:
    """``[N + 1]`` the last operator that reads what an operator wrote.

    Beyond the end for what nobody reads, an output, and for what comes from OUTSIDE, which is the last entry.
    """
    count = len(held.inputs)
    last = [count] * (count + 1)
    for index, sources in enumerate(held.inputs):
        if held.holder[index] == index:  # a view reads nothing; its own readers read the memory behind it
            for source in sources:
                last[source] = index
    last[OUTSIDE] = count
    return last


def _backward_peak(held: Storages, kept: list[list[int]], extra_bytes: list[int], live: int) -> int:
    first_keeper: dict[int, int] = {}
    for index in reversed(range(len(kept))):
        for holder in kept[index]:
            first_keeper[holder] = index
    first_keeper.pop(OUTSIDE, None)  # its caller holds it
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
        for tensor in kept[index]:
            if first_keeper.get(tensor) == index:
                live -= held.size_bytes[tensor]
    return peak
