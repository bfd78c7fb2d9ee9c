"""What a predictor is worth on rows that it never saw, beside the roofline and a linear model."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from gnnperf.datasets.dataset import Dataset
from gnnperf.evaluation.metrics import summarise
from gnnperf.evaluation.scoring import predict, score_rows
from gnnperf.evaluation.space_references import operator_count_latencies
from gnnperf.predictor import Predictor
from gnnperf.training.split import Split

REPORTED_DEVICE = "1080ti"
_IN_SPACE_ROWS = 2000  # a search space's rows that are scored for each batch size; more only narrow the figure


@dataclass
class Report:
    """Scored rows and their summaries.

    Attributes:
        rows: every row of the held-out families, columns :data:`gnnperf.evaluation.scoring.ROW_COLUMNS`.
        families: MAPE by phase, family, stack, in fractions.
        in_space: MAPE by search space and batch, beside the linear model on operator counts.
    """

    rows: pd.DataFrame
    families: pd.DataFrame
    in_space: pd.DataFrame

    def to_dict(self) -> dict:
        """Plain data for JSON."""
        return {
            "summary": {
                phase: summarise(part["predicted_ms"], part["latency_ms"]).to_dict()
                for phase, part in self.rows.groupby("phase", observed=True)
            },
            "families": _records(self.families),
            "in_space": _records(self.in_space),
        }


def _records(frame: pd.DataFrame) -> list[dict]:
    """Rows as plain data; JSON has no NaN, so what is not defined is None."""
    return [
        {name: None if value != value else value for name, value in row.items()} for row in frame.to_dict("records")
    ]


def report(split: Split, dataset: Dataset, predictor: Predictor, device: str = REPORTED_DEVICE) -> Report:
    """Score the held-out families' whole-model rows and the held-out search-space graphs of one device."""
    held_out = _of_device(split.held_out, device)
    held_out = held_out[held_out["kind"] == "model"]
    rows = score_rows("held out", held_out, _of_device(split.train, device), dataset, predictor)
    return Report(rows, _by_family(rows), _in_space(split, dataset, predictor, device))


def _of_device(frame: pd.DataFrame, device: str) -> pd.DataFrame:
    return frame[frame["device"] == device]


def _by_family(rows: pd.DataFrame) -> pd.DataFrame:
    records = []
    keys = ["phase", "precision", "family", "source", "stack"]
    for values, part in rows.groupby(keys, observed=True):
        records.append(dict(zip(keys, values, strict=True)) | _mapes(part))
    for (phase, precision), part in rows.groupby(["phase", "precision"], observed=True):
        total = {"phase": phase, "precision": precision, "family": "all", "source": "all", "stack": "all"}
        records.append(total | _mapes(part))
    return pd.DataFrame(records)


def _mapes(part: pd.DataFrame) -> dict:
    truth = part["latency_ms"]
    ours = summarise(part["predicted_ms"], truth)
    return {
        "rows": ours.rows,
        "mape": ours.mape,
        "median_ape": ours.median_ape,
        "bias": ours.bias,
        "mape_without_campaign": summarise(part["stack_only_ms"], truth).mape,
        "mape_roofline": summarise(part["roofline_ms"], truth).mape,
        "mape_linear": summarise(part["linear_ms"], truth).mape,
    }


def _in_space(split: Split, dataset: Dataset, predictor: Predictor, device: str) -> pd.DataFrame:
    records = []
    held_out, train = _of_device(split.in_space, device), _of_device(split.train, device)
    for (family, batch), part in held_out.groupby(["family", "batch"], observed=True):
        part = part.iloc[:_IN_SPACE_ROWS]
        predicted = predict(part, dataset, predictor, with_campaign=True)
        counted = operator_count_latencies(train, part, dataset)
        ours = summarise(predicted, part["latency_ms"])
        records.append(
            {
                "family": family,
                "batch": int(batch),
                "rows": ours.rows,
                "mape": ours.mape,
                "kendall_tau": ours.kendall_tau,
                "mape_operator_counts": summarise(counted, part["latency_ms"]).mape,
            }
        )
    return pd.DataFrame(records)
