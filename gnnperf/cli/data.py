"""``gnnperf data``: bring public measurements into one table, list and check what is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from gnnperf.cli.console import one_line_errors, stderr, stdout
from gnnperf.cli.dataset_option import DEFAULT_DATA
from gnnperf.errors import DataError

if TYPE_CHECKING:
    from gnnperf.datasets.dataset import Dataset
    from gnnperf.datasets.graph_store import GraphStore
    from gnnperf.datasets.readers import Source

app = typer.Typer(
    name="data",
    help="Measurements that networks are trained and evaluated on.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Folder = Annotated[
    Path,
    typer.Option("--to", "--dir", envvar="GNNPERF_DATA", help="Folder of the table and its graphs.", show_default=True),
]
SHIPPED_GRAPHS = "data/timm_graphs.npz"
ALL = "all"
MEASURED = "measured"


@app.command("import")
def import_command(
    source: Annotated[
        str, typer.Argument(help="Name of a source (`gnnperf data list`), `all` of them, or `measured`.")
    ],
    path: Annotated[
        Path | None,
        typer.Argument(
            help="Folder with the source's files; for `all`, the folder that holds one folder a source; for "
            "`measured`, a table of `gnnperf measure` or a folder of such."
        ),
    ] = None,
    to: Folder = DEFAULT_DATA,
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="Read another version than the one that checksums are known of.")
    ] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help="How many processes build graphs; all cores by default.")
    ] = None,
    graphs: Annotated[
        Path | None,
        typer.Option(
            help="Graphs of networks that the zoo cannot build (timm), as scripts/export_timm_graphs.py makes them. "
            "Default: those of 1,600 networks that ship with gnnperf."
        ),
    ] = None,
) -> None:
    """Read a public source into the table, in the place of what it gave before.

    Files are compared with known checksums, rows with their known number. A failed import changes nothing.

    **Examples**

        gnnperf data import published

        gnnperf data import help ~/HELP/data

        gnnperf data import all ~/measurements --to data

        gnnperf data import timm ~/measurements/timm --graphs my_timm_graphs.npz

        gnnperf data import measured mine.csv
    """
    if source == MEASURED:
        _import_measured(path, to, processes)
        return
    with one_line_errors():
        from gnnperf.datasets.dataset import Dataset
        from gnnperf.datasets.graph_store import GraphStore
        from gnnperf.resources import resource

        todo = _sources(source, path)
        needed = any(item.graphs_from for item, _ in todo)
        made = GraphStore.load(graphs or resource(SHIPPED_GRAPHS)) if needed else None
        dataset = Dataset.open_or_create(to)
        for item, folder in todo:
            rows, skipped = _import_with_bar(item, folder, dataset, not no_verify, processes, made)
            stdout.print(f"{item.name}: {rows:,} rows" + (f", {skipped:,} skipped without a graph" if skipped else ""))
        stdout.print(f"{escape(str(to))}: {len(dataset):,} rows, {len(dataset.graphs):,} graphs")


def _import_measured(path: Path | None, to: Path, processes: int | None) -> None:
    with one_line_errors():
        from gnnperf.datasets.dataset import Dataset
        from gnnperf.datasets.importing import Progress, import_measured
        from gnnperf.datasets.readers.measured import tables

        if path is None:
            raise DataError("give the table that `gnnperf measure` wrote: gnnperf data import measured mine.csv")
        dataset = Dataset.open_or_create(to)
        for table in tables(path):
            busy: list[int] = []
            rows = import_measured(table, dataset, Progress(skip=busy.append), processes)
            left_out = f", {sum(busy):,} left out as the machine was busy" if busy else ""
            stdout.print(f"{escape(str(table))}: {rows:,} rows{left_out}")
        stdout.print(f"{escape(str(to))}: {len(dataset):,} rows, {len(dataset.graphs):,} graphs")


def _sources(name: str, path: Path | None) -> list[tuple[Source, Path]]:
    """What to import from where."""
    from gnnperf.datasets.readers import READERS, published
    from gnnperf.resources import resource

    if name == published.NAME and path is None:
        return [(READERS[name], resource("data"))]
    if name not in READERS and name != ALL:
        raise DataError(f"unknown source {name!r}: one of {', '.join(READERS)}, {ALL} or {MEASURED}")
    if path is None:
        raise DataError(f"give the folder that holds the files of {name}: gnnperf data import {name} PATH")
    if name != ALL:
        return [(READERS[name], path)]
    found = [(item, _folder_of(item, path)) for item in READERS.values() if item.name != published.NAME]
    found = [(item, folder) for item, folder in found if folder is not None]
    if not found:
        raise DataError(f"{path} holds no folder that is named like a source ({', '.join(READERS)})")
    return found


def _folder_of(source: Source, parent: Path) -> Path | None:
    """``parent/NAME``, or ``parent`` itself where the source's files lie loose in it."""
    if (parent / source.name).is_dir():
        return parent / source.name
    loose = f"{source.name}.csv"
    return parent if loose in source.files and (parent / loose).is_file() else None


def _import_with_bar(
    source: Source, folder: Path, dataset: Dataset, verify: bool, processes: int | None, made: GraphStore | None
) -> tuple[int, int]:
    """Rows imported, and rows skipped because their graph is not at hand."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from gnnperf.datasets import importing

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task(f"{source.name}: reading", total=None)

        def start(total: int) -> None:
            bar.update(task, description=f"{source.name}: graphs", total=total)

        skipped = []
        progress = importing.Progress(start, lambda count: bar.advance(task, count), skipped.append)
        rows = importing.import_source(source, folder, dataset, verify, progress, processes, made)
        return rows, sum(skipped)


@app.command("list")
def list_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the sources that can be imported, with version, licence and number of rows.

    **Example**

        gnnperf data list
    """
    with one_line_errors():
        from gnnperf.datasets.readers import READERS

        if as_json:
            fields = ("name", "rows", "licence", "upstream")
            typer.echo(json.dumps([{name: getattr(item, name) for name in fields} for item in READERS.values()]))
            return
        table = Table("source", "rows", "licence", "upstream", box=None)
        for item in READERS.values():
            table.add_row(item.name, f"{item.rows:,}", item.licence, item.upstream)
        stdout.print(table)


@app.command("stats")
def stats_command(
    to: Folder = DEFAULT_DATA,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Count what the table holds, by source, device and phase.

    **Examples**

        gnnperf data stats --to data

        gnnperf data stats --json
    """
    with one_line_errors():
        from gnnperf.datasets.dataset import Dataset

        dataset = Dataset.open(to)
        by = ["source", "device", "phase"]
        counts = dataset.frame.groupby(by, observed=True).agg(
            rows=("latency_ms", "size"),
            models=("model", "nunique"),
            median_ms=("latency_ms", "median"),
        )
        counts = counts.reset_index().astype({name: str for name in by})
        if as_json:
            summary = {
                "rows": len(dataset),
                "graphs": len(dataset.graphs),
                "families": sorted(dataset.frame["family"].cat.categories),
                "counts": counts.to_dict("records"),
            }
            typer.echo(json.dumps(summary))
            return
        table = Table(*by, "rows", "models", "median ms", box=None)
        for row in counts.itertuples(index=False):
            table.add_row(row.source, row.device, row.phase, f"{row.rows:,}", f"{row.models:,}", f"{row.median_ms:.3g}")
        stdout.print(table)
        stdout.print(f"{escape(str(to))}: {len(dataset):,} rows, {len(dataset.graphs):,} graphs")


@app.command("check")
def check_command(to: Folder = DEFAULT_DATA) -> None:
    """Check every row again, the number of rows a source, and that every graph is there and undamaged.

    **Example**

        gnnperf data check --to data
    """
    with one_line_errors():
        from gnnperf.datasets.checking import check_dataset
        from gnnperf.datasets.dataset import Dataset

        dataset = Dataset.open(to)
        problems = check_dataset(dataset)
        if problems:
            raise DataError(f"{to}: " + "; ".join(problems))
        stdout.print(f"{escape(str(to))}: {len(dataset):,} rows and {len(dataset.graphs):,} graphs are sound")
