"""A report on held-out rows as compact tables for the terminal; the model card has every column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from gnnperf.evaluation.report import Report


_ROOM_FOR_SOURCES = 100


def accuracy_tables(result: Report, width: int) -> Iterator[Table]:
    """One table on families never seen and one on graphs inside search spaces; none for what has no rows.

    Errors are MAPE in per cent; the campaign that measured is named where ``width`` characters have room for it.
    """
    if len(result.families):
        with_source = width >= _ROOM_FOR_SOURCES
        table = _table(
            "MAPE in % on families that were held out",
            ("phase", "family", "stack", *(("source",) if with_source else ())),
            ("rows", "gnnperf", "+campaign", "linear", "roofline"),
        )
        for row in result.families.itertuples(index=False):
            table.add_row(
                row.phase if row.precision == "fp32" else f"{row.phase} {row.precision}",
                row.family,
                row.stack,
                *((row.source,) if with_source else ()),
                str(row.rows),
                *map(_percent, (row.mape_without_campaign, row.mape, row.mape_linear, row.mape_roofline)),
                style="bold" if row.family == "all" else "",
            )
        yield table
    if len(result.in_space):
        table = _table(
            "MAPE in % inside search spaces, on graphs that were held out",
            ("family", "batch"),
            ("rows", "gnnperf", "operator counts", "Kendall tau"),
        )
        for row in result.in_space.itertuples(index=False):
            errors = map(_percent, (row.mape, row.mape_operator_counts))
            table.add_row(row.family, str(row.batch), str(row.rows), *errors, f"{row.kendall_tau:.3f}")
        yield table


def _table(title: str, names: tuple[str, ...], figures: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in names:
        table.add_column(name, no_wrap=True)
    for name in figures:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _percent(value: float) -> str:
    return f"{100 * value:.1f}" if value == value else "-"
