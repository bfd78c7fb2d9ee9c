"""The model card: what a predictor was trained on, what it reaches on rows it never saw, and how to make it again."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from gnnperf.datasets.dataset import Dataset
from gnnperf.errors import TrainingError
from gnnperf.evaluation.report import REPORTED_DEVICE, Report, report
from gnnperf.files import write_whole
from gnnperf.predictor import DESCRIPTION_FILE, Predictor
from gnnperf.training.split import Split

CARD_FILE = "CARD.md"
METRICS_FILE = "metrics.json"
PREDICTIONS_FILE = "held_out.csv"


def write_card(folder: Path, dataset: Dataset, split: Split) -> Report:
    """Score the predictor in ``folder`` and write ``CARD.md``, ``metrics.json`` and ``held_out.csv`` beside it.

    Raises:
        TrainingError: the folder cannot be written.
    """
    result = report(split, dataset, Predictor.load(folder))
    description = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
    try:
        for name, text in (
            (METRICS_FILE, json.dumps(result.to_dict(), indent=2, allow_nan=False) + "\n"),
            (PREDICTIONS_FILE, _predictions_csv(result.rows)),
            (CARD_FILE, _card(description, _figures(result))),
        ):
            write_whole(folder / name, text.encode())
    except OSError as error:
        raise TrainingError(f"cannot write to {folder}: {error.strerror or error}") from None
    return result


def _predictions_csv(rows: pd.DataFrame) -> str:
    columns = ["model", "family", "source", "stack", "precision", "phase", "window", "optimizer", "batch", "latency_ms",
               "predicted_ms", "stack_only_ms", "analytic_ms", "linear_ms", "roofline_ms", "citation"]  # fmt: skip
    rounded = rows[columns].copy()
    numbers = rounded.select_dtypes("float").columns
    rounded[numbers] = rounded[numbers].map(lambda value: float(f"{value:.5g}"))
    return rounded.to_csv(index=False)


def _percent(frame: pd.DataFrame) -> pd.DataFrame:
    shown = frame.copy()
    for column in shown.columns:
        if column.startswith(("mape", "median_ape", "bias")):
            shown[column] = [f"{100 * value:.1f}" if value == value else "" for value in shown[column]]
        elif column == "kendall_tau":
            shown[column] = shown[column].map("{:.3f}".format)
    return shown


def _table(frame: pd.DataFrame) -> str:
    """A Markdown table."""
    if frame.empty:
        return "none\n"
    rows = [frame.columns, ["---"] * frame.shape[1], *_percent(frame).astype(str).to_numpy().tolist()]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def _figures(result: Report) -> str:
    return (
        f"Held-out families on {REPORTED_DEVICE}, errors in per cent. `mape_without_campaign` predicts for the stack "
        "alone, as for a user's file; `mape` also uses the campaign's own effect, learned from other families.\n\n"
        f"{_table(result.families)}\n"
        "Inside search spaces, on graphs not trained on; `mape_operator_counts` is a linear model on operators.\n\n"
        f"{_table(result.in_space)}"
    )


def _card(description: dict, figures: str) -> str:
    config, rows, domain = description["config"], description["rows"], description["domain"]
    sources = ", ".join(f"{name} {count:,}" for name, count in rows["by_source"].items())
    families = ", ".join(f"{name} {count:,}" for name, count in rows["by_family"].items())
    versions = ", ".join(f"{name} {number}" for name, number in description["versions"].items())
    return f"""# {description["name"]}

Made on {description["date"]} by `gnnperf train` from the configuration in {DESCRIPTION_FILE} (seed {config["seed"]},
{description["training_seconds"]:.0f} s of training) with {versions}.

## Data

Trained on {rows["train"]:,} rows. By source: {sources}. By family: {families}.

Whole networks on {", ".join(domain["devices"])}; precisions {", ".join(domain["precisions"])}; stacks
{", ".join(domain["stacks"])}; batches {domain["batch"][0]} to {domain["batch"][1]}.

Never trained on: every row of {", ".join(config["data"]["held_out_families"])} (on any device, of any source), and
{100 * (1 - config["data"]["search_space_share"]):.0f} % of the graphs of each search space. No run was stopped
by them. What they had to do with the design is in docs/ablations.md.

## Accuracy

{figures}
Every scored row with its truth and citation: {PREDICTIONS_FILE}.

## Limits

90 % intervals come from `gnnperf calibrate`; once it has run, {DESCRIPTION_FILE} says what each family is covered to
(docs/intervals.md). A stack, a device or an operator class that is not among the above is predicted from the
analytic model alone, and the prediction says so.
"""
