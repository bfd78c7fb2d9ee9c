"""``gnnperf benchmark``: gnnperf and everything that it has to beat, on the same measurements."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gnnperf.cli.benchmark_bar import BenchmarkBar
from gnnperf.cli.console import one_line_errors, stderr, stdout

EPILOG = """
**Examples**

    gnnperf benchmark                                   # what needs no training data, on the truths that ship

    gnnperf benchmark --data gnnperf-data --resperfnet ../shared/data/resperfnet --folds runs/evaluate/families

    gnnperf benchmark --data gnnperf-data --only gnnperf,refined-roofline --rows --csv rows.csv

    gnnperf benchmark --data gnnperf-data --markdown benchmark.md --plot benchmark.png

All of it takes half an hour on 2 cores the first time; what was fitted is kept in --cache, so that a stopped run
continues. docs/benchmark.md says what the truths and the methods are.
"""


def benchmark(
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="GNNPERF_DATA",
            help="Folder that `gnnperf data import` filled: what methods are fitted on. Without it, those alone that "
            "need no data.",
        ),
    ] = None,
    resperfnet: Annotated[
        Path | None,
        typer.Option(help="Folder of ResPerfNet's measurements: the second truth, and rows for per-layer methods."),
    ] = None,
    folds: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a finished `gnnperf evaluate families`. Without it, the rows that ship with the predictor "
            "stand for our networks of the other families, and what they do not tell is left out."
        ),
    ] = None,
    device_folds: Annotated[
        Path | None,
        typer.Option(help="Folder of a finished `gnnperf evaluate devices`, for ours in the cross-device table."),
    ] = None,
    predictor: Annotated[
        Path | None, typer.Option(help="Folder of a predictor of your own, trained without the headline families.")
    ] = None,
    only: Annotated[str | None, typer.Option(help="Names of methods, comma-separated.")] = None,
    cache: Annotated[Path, typer.Option(help="Where fitted methods' predictions are kept.")] = Path("runs/benchmark"),
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Fits at a time, a core each.")] = 2,
    rows: Annotated[bool, typer.Option("--rows", help="Every row with its truth's source.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One object; errors are fractions.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write every row, a column a method.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the tables as Markdown.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a PNG: every row by method and network.")] = None,
) -> None:
    """Compare gnnperf with rooflines, linear models and the published per-layer and graph methods.

    LeNet, AlexNet, VGG and other networks on a GTX 1080 Ti, inference and training steps. No method has seen a row of
    the family that it is scored on.
    """
    with one_line_errors():
        from gnnperf.evaluation.benchmark.suite import Inputs, benchmark_suite

        inputs = Inputs(data, resperfnet, folds, device_folds, predictor, cache, jobs)
        names = tuple(name.strip() for name in only.split(",")) if only else ()
        result = benchmark_suite(inputs, names, BenchmarkBar(stderr))
        if csv is not None:
            _write(csv, result.table().to_csv(index=False))
        if markdown is not None:
            from gnnperf.evaluation.benchmark.markdown import benchmark_markdown

            _write(markdown, benchmark_markdown(result))
        if plot is not None:
            from gnnperf.evaluation.benchmark.plot import plot_benchmark

            plot_benchmark(result, plot)
        if as_json:
            sys.stdout.write(json.dumps(result.to_dict(), indent=2, allow_nan=False) + "\n")
            return

        from gnnperf.cli.benchmark_tables import benchmark_tables, rows_tables

        console = stdout if stdout.is_terminal else Console(width=220 if rows else 140, highlight=False)
        for table in rows_tables(result) if rows else ():
            console.print(table)
        for part in benchmark_tables(result, console.width):
            console.print(part, markup=False, soft_wrap=isinstance(part, str) and not stdout.is_terminal)


def _write(path: Path, text: str) -> None:
    from gnnperf.errors import GnnperfError

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise GnnperfError(f"cannot write {path}: {error.strerror or error}") from None
