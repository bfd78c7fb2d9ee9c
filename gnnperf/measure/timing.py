"""From a case to its rows: load, warm up, repeat, and note what else the machine did."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from gnnperf.conditions import Precision
from gnnperf.datasets.graph_store import GraphStore
from gnnperf.errors import MeasureError
from gnnperf.graph import read_graph, to_arrays
from gnnperf.measure.cases import Case
from gnnperf.measure.energy import energy_meter
from gnnperf.measure.layers import single_layers
from gnnperf.measure.memory import peak_memory_mb
from gnnperf.measure.models import RunnableModel
from gnnperf.measure.protocol import Settings, Timing, time_runs
from gnnperf.measure.quietness import Quietness, QuietnessWatch, combined, gpu_quietness
from gnnperf.measure.rows import MeasuredRow, RowKey
from gnnperf.measure.runners import Runner, make_runner

_WAITING = 1.05  # a single-threaded repeat that took longer than this many times its CPU time waited
_MOST_WAITED = 0.2  # share of such repeats above which the machine was not quiet


class Stopwatch:
    """Times cases one after the other.

    Args:
        settings: when a time is known well enough.
        machine: key of the machine's record.
        graphs: takes the structure of what the zoo cannot build again, before the row that needs it is given.
    """

    def __init__(self, settings: Settings, machine: str, graphs: GraphStore) -> None:
        self._settings = settings
        self._machine = machine
        self._graphs = graphs
        self._watch = QuietnessWatch()

    def rows(self, case: Case, done: set[RowKey]) -> Iterator[MeasuredRow]:
        """Rows of a case that are not among ``done``, each as soon as it is known.

        Raises:
            GnnperfError: the network cannot be read, or cannot be run here. Of layers that cannot be run, the others
                are given first.
        """
        if case.campaign.per_layer:
            yield from self._layers(case, done)
        elif not done.intersection(case.key(precision) for precision in Precision):
            network = case.network
            row = self._timed(case, network.load(case.batch), "", network.graph_key)
            if network.is_file:
                self._graphs.names[row.spec] = self._graphs.add(network.structure)
            yield row

    def _layers(self, case: Case, done: set[RowKey]) -> Iterator[MeasuredRow]:
        failed: list[MeasureError] = []
        for layer, model in single_layers(case.network.load(case.batch)):
            if case.key(model.precision, layer) in done:
                continue
            # What the reader takes for the batch may be something else inside a network.
            graph_key = self._graphs.add(replace(to_arrays(read_graph(model.proto)), batch=case.batch).at_batch(1))
            try:
                row = self._timed(case, model, layer, graph_key)
            except MeasureError as error:
                failed.append(error)
                continue
            self._graphs.names[row.spec] = graph_key
            yield row
        if failed:
            more = f" (and {len(failed) - 1} layers more)" if len(failed) > 1 else ""
            raise MeasureError(f"{failed[0]}{more}")

    def _timed(self, case: Case, model: RunnableModel, layer: str, graph_key: str) -> MeasuredRow:
        campaign = case.campaign
        gc.collect()  # the network before this one may still be there
        runner = make_runner(case, model)
        single_threaded = campaign.threads == 1 and not campaign.on_gpu
        settings = replace(self._settings, waiting=_WAITING if single_threaded else None)
        meter = energy_meter(campaign.on_gpu)
        self._watch.start()
        timing = time_runs(runner.run, settings)
        quiet = combined(self._watch.stop(), _waiting(timing), gpu_quietness() if campaign.on_gpu else Quietness(True))
        runs = timing.warm_ups + timing.repeats + timing.dropped
        parts = dict(zip(("forward_ms", "backward_ms", "update_ms"), timing.parts_ms, strict=False))
        return MeasuredRow(
            model=case.network.name,
            layer=layer,
            batch=case.batch,
            phase=case.phase,
            latency_ms=timing.median_ms,
            spread_ms=timing.spread_ms,
            repeats=timing.repeats,
            stack=case.stack,
            framework_version=runner.version,
            precision=model.precision,
            window=campaign.window,
            optimizer=case.optimizer,
            device=campaign.device,
            threads=campaign.threads,
            quiet=quiet.quiet,
            quiet_note=quiet.note,
            peak_memory_mb=self._peak_memory_mb(case, runner, layer),
            energy_mj=meter.stop_mj() / runs if meter else math.nan,
            shapes=case.network.shapes,
            graph_key=graph_key,
            machine=self._machine,
            measured_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            **parts,
        )

    def _peak_memory_mb(self, case: Case, runner: Runner, layer: str) -> float:
        if case.campaign.on_gpu:
            return runner.peak_memory_mb()
        return peak_memory_mb(case) if case.campaign.peak_memory and not layer else math.nan


def _waiting(timing: Timing) -> Quietness:
    if timing.waited <= _MOST_WAITED:
        return Quietness(True)
    return Quietness(False, f"{timing.waited:.0%} of the repeats waited for the processor")
