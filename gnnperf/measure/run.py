"""Measure cases into a table: what is there is skipped, what fails is told, nothing that is done is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from gnnperf.datasets.graph_store import GraphStore
from gnnperf.errors import DataError, GnnperfError, ModelFileError
from gnnperf.files import lock
from gnnperf.measure.cases import Case
from gnnperf.measure.machine import remember_machine
from gnnperf.measure.protocol import Settings
from gnnperf.measure.rows import MeasuredRow, RowWriter
from gnnperf.measure.timing import Stopwatch


@dataclass
class Outcome:
    """What it came to.

    Attributes:
        rows: measured now.
        skipped: cases whose rows were all there.
        failed: message of each case that could not be measured.
    """

    rows: list[MeasuredRow] = field(default_factory=list)
    skipped: int = 0
    failed: list[str] = field(default_factory=list)


def measure(
    cases: Iterable[Case],
    table: Path,
    settings: Settings = Settings(),
    before: Callable[[Case], None] = lambda case: None,
    after: Callable[[Case, list[MeasuredRow], str], None] = lambda case, rows, problem: None,
    *,
    repeat_busy: bool = False,
) -> Outcome:
    """Measure every case that the table does not hold yet.

    Beside ``mine.csv`` lie ``mine.machines.json``, the machine's description, and ``mine.graphs.npz``, the structures
    of files and layers, which the zoo cannot build.

    Args:
        cases: what to measure, such as :meth:`Campaign.cases`; taken one by one.
        table: file to append to; made if absent.
        settings: when a time is known well enough.
        before: called before each case.
        after: called after each case with its new rows, and why it failed ("" where it did not).
        repeat_busy: measure again what was measured while the machine was busy; those rows stay and count nowhere.

    Raises:
        DataError: the table is no table of measurements, cannot be written, or another process is measuring into it.
    """
    writer = RowWriter(table, repeat_busy=repeat_busy)
    with table.open("rb") as stream:
        if not lock(stream):  # two would disturb each other's times, and measure everything twice
            raise DataError(f"another process is measuring into {table}: wait for it, or choose another table")
        return _measure(cases, writer, settings, before, after)


def _measure(
    cases: Iterable[Case],
    writer: RowWriter,
    settings: Settings,
    before: Callable[[Case], None],
    after: Callable[[Case, list[MeasuredRow], str], None],
) -> Outcome:
    """As :func:`measure`, into a table that is open."""
    table = writer.path
    graphs_path = graphs_beside(table)
    graphs = GraphStore.load(graphs_path) if graphs_path.exists() else GraphStore()
    saved = len(graphs.names)
    stopwatch = Stopwatch(settings, remember_machine(table), graphs)
    outcome = Outcome()
    unreadable: set[str] = set()
    for case in cases:
        if case.network.name in unreadable:
            after(case, [], "")
            continue
        before(case)
        rows, problem = [], ""
        try:
            for row in stopwatch.rows(case, writer.done):
                if len(graphs.names) > saved:
                    _save_graphs(graphs, graphs_path)
                    saved = len(graphs.names)
                writer.append(row)
                rows.append(row)
        except DataError:
            raise
        except GnnperfError as error:
            if isinstance(error, ModelFileError):  # not at another batch either
                unreadable.add(case.network.name)
            problem = f"{case.describe()}: {error}"
            outcome.failed.append(problem)
        outcome.rows += rows
        outcome.skipped += not rows and not problem
        after(case, rows, problem)
    return outcome


def graphs_beside(table: Path) -> Path:
    """Where the structures of a table's files and layers are kept."""
    return table.with_name(f"{table.stem}.graphs.npz")


def _save_graphs(graphs: GraphStore, path: Path) -> None:
    try:
        graphs.save(path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from None
