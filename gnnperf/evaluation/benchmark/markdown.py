"""A benchmark as Markdown: one table for each truth and phase, methods by networks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from gnnperf.evaluation.benchmark.claims import CLAIMS
from gnnperf.evaluation.benchmark.networks import table_groups
from gnnperf.evaluation.benchmark.result import MEAN_OF_THREE, Benchmark
from gnnperf.evaluation.benchmark.truths import MEANING, Truth

OTHER_TRUTH = "*"
"""Behind the name of a method that is scored on the truth that it is not made for."""
_TITLES = {"inference": "inference", "training": "training step"}


def table_columns(rows: pd.DataFrame) -> list[str]:
    """Columns of the table of some rows: headline networks, all rows of them, their mean, then the others."""
    columns = list(table_groups(rows))
    if "all three" in columns:
        columns.insert(columns.index("all three") + 1, MEAN_OF_THREE)
    return columns


def title(truth: Truth, phase: str, rows: pd.DataFrame) -> str:
    """What a table is over."""
    return f"{str(truth).capitalize()}, {_TITLES[phase]}: MAPE in % over {len(rows)} rows"


def label(name: str, made_for: Truth, truth: Truth) -> str:
    """A method's name, marked where the truth is not the one that it predicts."""
    return name if made_for == truth else name + OTHER_TRUTH


def cell(record: dict | None) -> str:
    """MAPE in per cent, with the number of rows behind it where the method says nothing of some."""
    if not record:
        return "-"
    some = record.get("predicted", 0) < record.get("rows", 0)
    return f"{100 * record['mape']:.1f}" + (f" ({record['predicted']})" if some else "")


def benchmark_markdown(result: Benchmark) -> str:
    """Tables by network, by stack and by batch size, what the methods are, and what is missing."""
    lines: list[str] = []
    for truth, phase, rows in result.parts():
        lines += [f"### {title(truth, phase, rows)}", "", f"Truth: {MEANING[truth]}.", ""]
        columns, records = table_columns(rows), result.summary(rows)
        counts = table_groups(rows)
        body = [["*rows*", *(str(len(counts[name])) if name in counts else "" for name in columns)]]
        body += [
            [label(method.name, method.made_for, truth), *(cell(records[method.name].get(name)) for name in columns)]
            for method in result.predicting(rows)
        ]
        lines += [*markdown_table(["", *columns], body), ""]
        for key in ("stack", "batch"):
            if rows[key].nunique() > 1:
                lines += [f"By {'software stack' if key == 'stack' else 'batch size'}, headline networks:", ""]
                lines += [*_by(result, truth, rows, key), ""]
    if result.cross_device:
        lines += ["### Leave one device out: MAPE in %", "", *_cross_device(result.cross_device), ""]
    lines += ["### Published", ""]
    lines += [f"- {claim.method}: {100 * claim.mape:.1f} %, {claim.over}. {claim.source}." for claim in CLAIMS]
    lines += ["", "### Methods", ""]
    lines += [f"- `{method.name}`: {method.what}." + (f" {method.paper}." if method.paper else "")
              for method in result.methods]  # fmt: skip
    lines += ["", f"`{OTHER_TRUTH}`: this truth is not what the method predicts. `-`: it says nothing of the rows; "
              "`(n)`: of n of them alone."]  # fmt: skip
    if result.missing or result.notes:
        lines += ["", "### Missing", "", *(f"- {sentence}" for sentence in missing_sentences(result))]
    return "\n".join(lines) + "\n"


def missing_sentences(result: Benchmark) -> list[str]:
    """What was left out and why, the folds of one reason together."""
    folds: dict[tuple[str, str], list[str]] = {}
    for (method, fold), reason in result.missing.items():
        folds.setdefault((method, reason), []).append(fold)
    return [
        *result.notes,
        *(f"{method}, {', '.join(names)}: {reason}" for (method, reason), names in folds.items()),
    ]


def markdown_table(head: Sequence[str], body: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a table."""
    for cells in (head, ["---"] * len(head), *body):
        yield "| " + " | ".join(cells) + " |"


def _by(result: Benchmark, truth: Truth, rows: pd.DataFrame, key: str) -> Iterator[str]:
    """A table of the headline networks' rows, columns by the values of ``key``."""
    headline = table_groups(rows).get("all three", rows)
    records = {record[key]: record for record in result.by(headline, key)}
    body = [["*rows*", *(str(record["rows"]) for record in records.values())]]
    body += [
        [
            label(method.name, method.made_for, truth),
            *(cell(record["methods"].get(method.name)) for record in records.values()),
        ]
        for method in result.predicting(headline)
    ]
    return markdown_table(["", *map(str, records)], body)


def _cross_device(records: list[dict]) -> Iterator[str]:
    columns = list(records[0])
    body = [[_plain(record[name]) for name in columns] for record in records]
    return markdown_table([name.replace("_", " ") for name in columns], body)


def _plain(value: object) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.1f}" if isinstance(value, float) else str(value)
