"""An evaluation as compact tables for the terminal; the JSON has every metric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from gnnperf.evaluation.evaluation import Evaluation

_PHASES = ("inference", "forward", "backward", "training")
_BREAKDOWN = {
    "headline": ("family", "stack"),
    "families": ("family",),
    "batches": ("fold", "family"),
    "stacks": ("stack", "family"),
    "inside": ("family", "batch"),
}
_GAP = 2
# Left out first where the terminal is narrow; the others always fit into 80 columns.
_OPTIONAL = ("tau", "median", "<10 %", "width", "+campaign", "bias", "covered")


def evaluation_tables(result: Evaluation, width: int) -> Iterator[Table]:
    """Tables of one phase each, as many columns as ``width`` characters have room for; errors are MAPE in per cent."""
    for phase in _PHASES:
        part = result.only(phase=phase)
        if part.rows.empty:
            continue
        title = f"{result.protocol} on {result.device}, {phase}"
        if result.protocol == "devices":
            yield from _device_tables(part, title, width)
            continue
        yield _table(part, _BREAKDOWN[result.protocol], title, width)
        if result.protocol == "families":  # a stack's rows of search spaces would hide all others
            part = replace(part, rows=part.summarised_rows())
            if part.rows["stack"].nunique() > 1:
                yield _table(part, ("stack",), title, width)


def _device_tables(result: Evaluation, title: str, width: int) -> Iterator[Table]:
    """Networks that people designed apart from thousands of a search space."""
    outside = result.summarised_rows()
    yield _table(replace(result, rows=outside), ("fold", "device"), title, width)
    inside = result.rows[~result.rows.index.isin(outside.index)]
    if len(inside):
        yield _table(replace(result, rows=inside), ("fold", "device", "family"), f"{title}, search spaces", width)


def _table(result: Evaluation, keys: tuple[str, ...], title: str, width: int) -> Table:
    records = result.table(*keys)
    names = [[str(record[key]) for key in keys] for record in records]
    totals = _totals(result, by_family=keys == ("family",)) if len(records) > 1 else {}
    names += [[name, *[""] * (len(keys) - 1)] for name in totals]
    records += totals.values()
    columns = {key: [row[place] for row in names] for place, key in enumerate(keys)} | _figures(records)
    columns = {name: cells for name, cells in columns.items() if any(cell not in ("", "-") for cell in cells)}
    for name in _OPTIONAL:
        if sum(max(map(len, (title, *cells))) + _GAP for title, cells in columns.items()) - _GAP > width:
            columns.pop(name, None)

    table = Table(title=f"{title}: MAPE in %", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="left" if name in keys else "right", no_wrap=True)
    for number, cells in enumerate(zip(*columns.values(), strict=True)):
        table.add_row(*cells, style="bold" if number >= len(records) - len(totals) else "")
    return table


def _totals(result: Evaluation, *, by_family: bool) -> dict[str, dict]:
    """Records of all rows, or of the groups that must not be mixed; by family also the mean over families."""
    if result.protocol == "devices":
        return {name: result.record(rows) for name, rows in result.groups().items()}
    if not by_family:
        return {"all": result.record(result.rows)}
    records = {name: result.record(rows) for name, rows in result.groups().items()}
    records = records if len(records) > 1 else {"all": result.record(result.rows)}
    return records | {"mean of families": result.family_mean()}


def _figures(records: list[dict]) -> dict[str, list[str]]:
    """Cells by the title of their column."""

    def percent(name: str, digits: int = 1, sign: str = "") -> list[str]:
        return [_percent(record.get(name), digits, sign) for record in records]

    return {
        "rows": [f"{record['rows']:,}" for record in records],
        "gnnperf": percent("mape"),
        "95 %": [
            "-" if record.get("ci_low") is None else f"{_percent(record['ci_low'])}-{_percent(record['ci_high'])}"
            for record in records
        ],
        "median": percent("median_ape"),
        "<10 %": percent("within_10", 0),
        "bias": percent("bias", 0, "+"),
        "tau": ["-" if record.get("kendall_tau") is None else f"{record['kendall_tau']:.2f}" for record in records],
        "covered": percent("coverage", 0),
        "width": percent("width", 0),
        "+campaign": percent("mape_with_campaign"),
        "analytic": percent("mape_analytic"),
        "linear": percent("mape_linear"),
        "counts": percent("mape_operator_counts"),
        "adapted": percent("mape_adapted"),
        "repeat": percent("mape_repeated"),
        "scaled": percent("mape_scaled"),
        "carried": percent("mape_carried"),
        "roofline": percent("mape_roofline"),
    }


def rows_table(rows: pd.DataFrame) -> Table:
    """Every row with its truth's source."""
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


def _percent(value: float | None, digits: int = 1, sign: str = "") -> str:
    return "-" if value is None else f"{100 * value:{sign}.{digits}f}"
