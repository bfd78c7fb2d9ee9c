"""Many networks: read and predicted in chunks, on one or several processes or machines, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from gnnperf.conditions import Conditions
from gnnperf.devices import Device
from gnnperf.errors import GnnperfError, ModelFileError
from gnnperf.graph import OpGraph, read_graph
from gnnperf.prediction import LatencyPrediction

if TYPE_CHECKING:
    from gnnperf.graph_cache import GraphCache
    from gnnperf.predictor import Predictor

Source = str | Path | bytes | onnx.ModelProto | OpGraph | Callable[[], "onnx.ModelProto | OpGraph"]
"""A network, or a function that gives it when its turn comes."""

_CHUNK = 16  # sources that a process takes at a time: a fraction of a second
_NODES_PER_RUN = 1500  # of the network: as many operators as stay in a core's cache


@dataclass(frozen=True)
class Request:
    """What is predicted of every source.

    Attributes:
        cases: devices and conditions.
        batches: batch sizes; None keeps a file's own.
        dims: values for named free dimensions.
        input_shapes: whole shapes for named inputs.
        top: how many of its slowest operators a prediction lists; None for all.
    """

    cases: tuple[tuple[Device, Conditions], ...]
    batches: tuple[int | None, ...] = (None,)
    dims: Mapping[str, int] | None = None
    input_shapes: Mapping[str, tuple[int, ...]] | None = None
    top: int | None = None

    @property
    def predictions_per_source(self) -> int:
        """How many predictions a source has of which all goes well."""
        return len(self.cases) * len(self.batches)


@dataclass
class Outcome:
    """What became of one source.

    Attributes:
        source: as it was given.
        predictions: batch by batch, device by device, phase by phase; those before the error where there is one.
        error: why the rest could not be predicted.
    """

    source: Source
    predictions: list[LatencyPrediction] = field(default_factory=list)
    error: GnnperfError | None = None


def predict_many(
    predictor: Predictor,
    sources: Iterable[Source],
    request: Request,
    *,
    jobs: int = 1,
    cache: GraphCache | None = None,
) -> Iterator[Outcome]:
    """See :meth:`gnnperf.predictor.Predictor.predict_many`."""
    chunks = _chunks(sources)
    if jobs == 1:
        return (outcome for chunk in chunks for outcome in _predict_chunk(predictor, chunk, request, cache))
    return _predict_in_processes(predictor, chunks, request, jobs, cache)


def _chunks(sources: Iterable[Source]) -> Iterator[list[Source]]:
    iterator = iter(sources)
    while chunk := list(islice(iterator, _CHUNK)):
        yield chunk


def _predict_in_processes(
    predictor: Predictor, chunks: Iterator[list[Source]], request: Request, jobs: int, cache: GraphCache | None
) -> Iterator[Outcome]:
    try:
        from joblib import Parallel, delayed
        from joblib.externals.loky.process_executor import TerminatedWorkerError
    except ModuleNotFoundError:
        raise GnnperfError("more than one job needs joblib: pip install 'gnnperf[jobs]'") from None

    waiting: deque[list[Source]] = deque()  # handed out, not back yet

    def tasks():
        for chunk in chunks:
            waiting.append(chunk)
            yield delayed(_predict_chunk)(predictor, chunk, request, cache)

    remaining = True
    while remaining:
        # Arrays in a graph are small; files that joblib would map them to would only cost.
        parallel = Parallel(n_jobs=jobs, return_as="generator", max_nbytes=None, batch_size=1)
        try:
            for outcomes in parallel(tasks()):
                waiting.popleft()
                yield from outcomes
            remaining = False
        except TerminatedWorkerError:
            # A file killed its process, by a defect in a library or for want of memory. It must not take the others
            # with it: all that were under way are tried again, each by itself.
            suspects = [source for chunk in waiting for source in chunk]
            waiting.clear()
            yield from _predict_apart(predictor, suspects, request, cache)


def _predict_apart(
    predictor: Predictor, sources: list[Source], request: Request, cache: GraphCache | None
) -> Iterator[Outcome]:
    """One after the other, in a process that is replaced when one of them kills it."""
    from joblib.externals.loky import ProcessPoolExecutor
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    process = ProcessPoolExecutor(1)
    try:
        for source in sources:
            try:
                yield from process.submit(_predict_chunk, predictor, [source], request, cache).result()
            except TerminatedWorkerError:
                error = ModelFileError("reading it killed the process that did: it is damaged, or too large")
                yield Outcome(source, error=error)
                process.shutdown(wait=False)
                process = ProcessPoolExecutor(1)
    finally:
        process.shutdown(wait=False, kill_workers=True)


def _predict_chunk(
    predictor: Predictor, sources: list[Source], request: Request, cache: GraphCache | None
) -> list[Outcome]:
    """Read the sources, then run the network on as many of them at a time as is fastest."""
    outcomes, inputs, owners, nodes = [], [], [], 0

    def run() -> None:
        predictions = predictor.predict_graphs(inputs, request.top)
        for owner, prediction in zip(owners, predictions, strict=True):
            owner.predictions.append(prediction)
        inputs.clear()
        owners.clear()

    for source in sources:
        outcome = Outcome(source)
        outcomes.append(outcome)
        try:
            for batch in request.batches:
                graph = _read(source, batch, request, cache)
                for case in request.cases:
                    nodes += len(graph.nodes)
                    if inputs and nodes > _NODES_PER_RUN:
                        run()
                        nodes = len(graph.nodes)
                    inputs.append((graph, *case))
                    owners.append(outcome)
        except GnnperfError as error:
            outcome.error = error
    run()
    return outcomes


def _read(source: Source, batch: int | None, request: Request, cache: GraphCache | None) -> OpGraph:
    if callable(source):
        source = source()
    if isinstance(source, OpGraph):
        if batch is not None or request.dims or request.input_shapes:
            raise ModelFileError("an OpGraph has its shapes already: give batch, dims and input_shapes to read_graph")
        graph = source
    else:
        read = read_graph if cache is None or isinstance(source, onnx.ModelProto) else cache.read_graph
        graph = read(source, batch=batch, dims=request.dims, input_shapes=request.input_shapes)
    if not graph.nodes:
        raise ModelFileError(f"{graph.name} computes nothing: all of it is constant, or it has no operators")
    return graph
