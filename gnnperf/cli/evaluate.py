"""``gnnperf evaluate``: what a predictor is worth on what it never saw."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from gnnperf.cli.console import one_line_errors, stdout
from gnnperf.conditions import Phase

EPILOG = """
**Examples**

    gnnperf evaluate headline

    gnnperf evaluate headline --phase training --rows --plot headline.png

    gnnperf evaluate headline --predictor runs/mine --json
"""


class Protocol(StrEnum):
    """Evaluation protocols."""

    HEADLINE = "headline"


def evaluate(
    protocol: Annotated[Protocol, typer.Argument(help="headline: LeNet, AlexNet, VGG on the GTX 1080 Ti.")],
    phase: Annotated[Phase | None, typer.Option(help="Only this phase; default: all.")] = None,
    predictor: Annotated[Path | None, typer.Option(help="Folder of a predictor of your own.")] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Every row with its truth's source.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One object; summary.mape is a fraction.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Write a scatter plot (PNG).")] = None,
) -> None:
    """Score a predictor on published truths of network families that it was not trained on."""
    with one_line_errors():
        from gnnperf.evaluation.headline import headline, headline_dict
        from gnnperf.predictor import Predictor

        result = headline(Predictor.load(predictor), phase)
        if plot is not None:
            from gnnperf.evaluation.plots import scatter

            scatter(result.rows, plot)
        if as_json:
            sys.stdout.write(json.dumps(headline_dict(result), indent=2, default=str) + "\n")
            return

        from gnnperf.cli.accuracy_tables import accuracy_tables

        console = stdout if stdout.is_terminal else Console(width=140, highlight=False)
        if rows:
            console.print(_rows_table(result.rows))
        for table in accuracy_tables(result, console.width):
            console.print(table)


def _rows_table(rows) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("model", "batch", "phase", "stack", "window"):
        table.add_column(name, no_wrap=True)
    for name in ("measured ms", "gnnperf", "error", "+campaign", "error"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("truth's source", overflow="fold")
    for row in rows.sort_values(["phase", "family", "model", "stack", "batch"]).itertuples(index=False):
        table.add_row(
            row.model, str(row.batch), row.phase, row.stack, row.window, f"{row.latency_ms:.4g}",
            f"{row.stack_only_ms:.4g}", f"{row.stack_only_ms / row.latency_ms - 1:+.1%}",
            f"{row.predicted_ms:.4g}", f"{row.predicted_ms / row.latency_ms - 1:+.1%}", f"{row.source}: {row.citation}",
        )  # fmt: skip
    return table
