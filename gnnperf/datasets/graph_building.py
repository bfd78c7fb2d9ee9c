"""From the zoo specifications in a table to graphs at batch 1, on several processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice

from gnnperf.errors import DataError, GnnperfError
from gnnperf.graph.arrays import GraphArrays, to_arrays

_CHUNK = 16  # graphs a process builds between two looks at whether it shall stop: under a second
_LAYER_CHUNK = 4096
_MIN_FOR_PROCESSES = 200  # below, starting processes costs more than it saves


def build_arrays(spec: str) -> GraphArrays:
    """The path that a user's file takes: zoo -> ONNX -> OpGraph -> arrays, at batch 1.

    Raises:
        DataError: the zoo does not know the specification.
    """
    from gnnperf.graph import read_graph
    from gnnperf.zoo import build

    try:
        return to_arrays(read_graph(build(spec, batch=1)))
    except GnnperfError as error:
        raise DataError(f"no graph of {spec!r}: {error}") from None


def build_many(
    specs: Sequence[str], advance: Callable[[int], None] = lambda count: None, processes: int | None = None
) -> Iterator[tuple[str, GraphArrays]]:
    """Graphs of all ``specs``, in any order; single layers are computed directly.

    Args:
        specs: zoo specifications, each once.
        advance: called with the number of graphs that were just finished.
        processes: how many work at the same time; all cores by default.

    Raises:
        DataError: the zoo does not know a specification.
    """
    from gnnperf.datasets.layer_arrays import is_layer, layer_arrays

    layers = [spec for spec in specs if is_layer(spec)]
    for begin in range(0, len(layers), _LAYER_CHUNK):
        chunk = layers[begin : begin + _LAYER_CHUNK]
        yield from zip(chunk, layer_arrays(chunk), strict=True)
        advance(len(chunk))

    models = [spec for spec in specs if not is_layer(spec)]
    processes = processes or os.cpu_count() or 1
    if processes == 1 or len(models) < _MIN_FOR_PROCESSES:
        for spec in models:
            yield spec, build_arrays(spec)
            advance(1)
        return
    with ProcessPoolExecutor(processes, initializer=_ignore_interrupt) as pool:
        chunks = (models[begin : begin + _CHUNK] for begin in range(0, len(models), _CHUNK))
        # A bounded queue: finished graphs must not pile up in front of a slow consumer.
        waiting = [(chunk, pool.submit(_build_chunk, chunk)) for chunk in islice(chunks, 2 * processes)]
        try:
            while waiting:
                chunk, future = waiting.pop(0)
                graphs = future.result()
                waiting += [(item, pool.submit(_build_chunk, item)) for item in islice(chunks, 1)]
                yield from zip(chunk, graphs, strict=True)
                advance(len(chunk))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _build_chunk(specs: list[str]) -> list[GraphArrays]:
    return [build_arrays(spec) for spec in specs]


def _ignore_interrupt() -> None:
    """Ctrl-C reaches every process of the terminal; the parent alone reacts to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
