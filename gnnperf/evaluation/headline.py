"""The headline protocol: LeNet, AlexNet and VGG, every truth that was published for one device."""

from __future__ import annotations

import pandas as pd

from gnnperf.datasets.importing import published_dataset
from gnnperf.datasets.splits import HEADLINE_FAMILIES
from gnnperf.errors import DataError
from gnnperf.evaluation.metrics import summarise
from gnnperf.evaluation.report import REPORTED_DEVICE, Report, report
from gnnperf.predictor import Predictor
from gnnperf.training.config import DataConfig
from gnnperf.training.split import split_rows

ROW_FIELDS = ("model", "batch", "phase", "stack", "window", "optimizer", "precision", "latency_ms", "predicted_ms",
              "stack_only_ms", "roofline_ms", "linear_ms", "ape", "source", "citation")  # fmt: skip


def headline(predictor: Predictor, phase: str | None = None) -> Report:
    """Score a predictor on data/published.csv, which ships with gnnperf.

    Args:
        predictor: must have been trained without the headline families, as every shipped one is.
        phase: only rows of this phase.

    Raises:
        DataError: there are no rows of that phase.
    """
    dataset = published_dataset()
    split = split_rows(dataset.frame, DataConfig(held_out_families=HEADLINE_FAMILIES), seed=0)
    if phase is not None:
        split.held_out = split.held_out[split.held_out["phase"] == phase]
    if split.held_out.empty:
        raise DataError(f"no headline truth of phase {phase} on {REPORTED_DEVICE}")
    return report(split, dataset, predictor)


def headline_dict(result: Report) -> dict:
    """Plain data for JSON: ``summary`` over all rows (``mape`` is a fraction), every row with its truth's source."""
    rows, report_dict = result.rows, result.to_dict()
    return {
        "protocol": "headline",
        "device": REPORTED_DEVICE,
        "summary": summarise(rows["predicted_ms"], rows["latency_ms"]).to_dict(),
        "by_phase": report_dict["summary"],
        "families": report_dict["families"],
        "rows": [
            {name: None if pd.isna(value) else value for name, value in row.items()}
            for row in rows[list(ROW_FIELDS)].astype(object).to_dict("records")
        ],
    }
