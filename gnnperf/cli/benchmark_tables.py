"""A benchmark as tables for the terminal; JSON and CSV have every figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Table

from gnnperf.evaluation.benchmark.claims import CLAIMS
from gnnperf.evaluation.benchmark.markdown import OTHER_TRUTH, cell, label, missing_sentences, table_columns, title
from gnnperf.evaluation.benchmark.networks import table_groups
from gnnperf.evaluation.benchmark.truths import MEANING, Truth

if TYPE_CHECKING:
    import pandas as pd

    from gnnperf.evaluation.benchmark.result import Benchmark

_ROW_COLUMNS = ("network", "stack", "batch", "latency_ms", "source")
_GAP = 2


def benchmark_tables(result: Benchmark, width: int) -> Iterator[Table | str]:
    """A table for each truth and phase, the published figures, and sentences about what is missing.

    Columns of single networks beside the headline's are left out where ``width`` characters have no room for them.
    """
    for truth, phase, rows in result.parts():
        yield _table(result, truth, phase, rows, width)
        yield f"truth: {MEANING[truth]}"
        yield ""
    for claim in CLAIMS:
        yield f"published: {claim.method} {100 * claim.mape:.1f} %, {claim.over}"
    yield f"{OTHER_TRUTH}: this truth is not what the method predicts; (n): of n rows alone; -: it says nothing of them"
    for sentence in missing_sentences(result):
        yield f"missing: {sentence}"


def _table(result: Benchmark, truth: Truth, phase: str, rows: pd.DataFrame, width: int) -> Table:
    methods, records, groups = result.predicting(rows), result.summary(rows), table_groups(rows)
    columns = {"method": [label(method.name, method.made_for, truth) for method in methods] + ["rows"]}
    for name in table_columns(rows):
        figures = [cell(records[method.name].get(name)) for method in methods]
        columns[name] = [*figures, str(len(groups[name])) if name in groups else ""]
    for name in list(columns)[::-1]:
        if sum(max(map(len, (head, *cells))) + _GAP for head, cells in columns.items()) - _GAP > width:
            if name in ("method", "lenet", "alexnet", "vgg16", "all three"):
                break
            del columns[name]
    table = Table(title=title(truth, phase, rows), title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="left" if name == "method" else "right", no_wrap=True)
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*cells, style="bold" if cells[0].startswith("gnnperf") else "")
    return table


def rows_tables(result: Benchmark) -> Iterator[Table]:
    """Every row: its truth and where that is from, and what each method says of it, in ms."""
    for truth, phase, rows in result.parts():
        methods = result.predicting(rows)
        table = Table(title=f"{truth}, {phase}: ms", title_justify="left", title_style="bold", box=None, pad_edge=False)
        for name in (*_ROW_COLUMNS, *(method.name for method in methods)):
            table.add_column(name, justify="left" if name in ("network", "stack", "source") else "right", no_wrap=True)
        ordered = rows.sort_values(["network", "stack", "batch"], kind="stable")
        for row in ordered.to_dict("records"):
            figures = [row["latency_ms"], *(row[method.name] for method in methods)]
            truth_ms, *predicted = (f"{value:.4g}" if value == value else "-" for value in figures)
            table.add_row(row["network"], row["stack"], str(row["batch"]), truth_ms, row["source"], *predicted)
        yield table
