"""Measured rows beside what the exported predictor and everything that it has to beat say of them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gnnperf.datasets.dataset import Dataset
from gnnperf.evaluation.references import (
    analytic_latencies,
    linear_latencies,
    roofline_latencies,
    row_cases,
    row_graphs,
)
from gnnperf.evaluation.space_references import adapted_latencies, operator_count_latencies, repeated_latencies
from gnnperf.predictor import Predictor
from gnnperf.training.samples import row_campaigns

_CHUNK = 64
_MEASURED = ("model", "family", "source", "device", "stack", "framework_version", "precision", "phase", "window",
             "optimizer", "batch", "latency_ms")  # fmt: skip
ROW_COLUMNS = ("fold", *_MEASURED, "predicted_ms", "stack_only_ms", "analytic_ms", "linear_ms", "operator_counts_ms",
               "adapted_ms", "repeated_ms", "roofline_ms", "low_ms", "high_ms", "citation")  # fmt: skip
"""Columns of a table of scored rows; milliseconds are those of the whole batch, NaN where there is no such figure.

``stack_only_ms`` is what a user's file gets. ``predicted_ms`` also uses the effect of the row's measurement campaign,
where the network knows it from other rows. ``low_ms`` and ``high_ms`` are the ends of the 90 % interval.
"""
TEXT_COLUMNS = ("fold", *_MEASURED[:-2], "citation")


def predict(frame: pd.DataFrame, dataset: Dataset, predictor: Predictor, *, with_campaign: bool) -> np.ndarray:
    """``[rows]`` ms that the exported network predicts, exactly as it ships.

    Args:
        frame: rows of the schema.
        dataset: where their graphs are.
        predictor: the network.
        with_campaign: use the measurement campaign's learned effect where the network knows the campaign (from other
            families' rows); without it the row is predicted for its stack alone, as a user's file is.
    """
    predicted = np.empty(len(frame))
    for begin in range(0, len(frame), _CHUNK):
        part = frame.iloc[begin : begin + _CHUNK]
        campaigns = list(row_campaigns(part)) if with_campaign else None
        latency_ms, _ = predictor.latencies(row_graphs(part, dataset), row_cases(part), campaigns)
        predicted[begin : begin + len(part)] = latency_ms
    return predicted


def prediction_intervals(
    frame: pd.DataFrame, dataset: Dataset, predictor: Predictor, predicted_ms: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``[rows]`` lower and ``[rows]`` upper ends of the 90 % intervals; NaN where the predictor was not calibrated.

    Args:
        frame: rows of the schema.
        dataset: where their graphs are.
        predictor: the network.
        predicted_ms: ``[rows]`` what :func:`predict` gave without campaigns.
    """
    return predictor.intervals(row_graphs(frame, dataset), row_cases(frame), predicted_ms)


def score_rows(
    fold: str,
    test: pd.DataFrame,
    train: pd.DataFrame,
    dataset: Dataset,
    predictor: Predictor,
    *,
    in_space: bool = False,
) -> pd.DataFrame:
    """A table of the columns :data:`ROW_COLUMNS`, a row for each of ``test``.

    Args:
        fold: name of the fold, for its column.
        test: rows of the schema to score.
        train: what the linear models are fitted on.
        dataset: where the graphs of both are.
        predictor: the network that is scored.
        in_space: whether ``train`` has other networks of the same search spaces, for :mod:`.space_references`.
    """
    scored = test[[*_MEASURED, "citation"]].reset_index(drop=True)
    scored["fold"] = fold
    scored["predicted_ms"] = predict(test, dataset, predictor, with_campaign=True)
    scored["stack_only_ms"] = predict(test, dataset, predictor, with_campaign=False)
    scored["analytic_ms"] = analytic_latencies(test, dataset)
    scored["linear_ms"] = linear_latencies(train, test, dataset)
    scored[["operator_counts_ms", "adapted_ms", "repeated_ms"]] = np.nan
    if in_space:
        scored["operator_counts_ms"] = operator_count_latencies(train, test, dataset)
        scored["adapted_ms"] = adapted_latencies(train, test, dataset, predictor)
        scored["repeated_ms"] = repeated_latencies(train, test, dataset)
    scored["roofline_ms"] = roofline_latencies(test, dataset)
    scored["low_ms"], scored["high_ms"] = prediction_intervals(test, dataset, predictor, scored["stack_only_ms"])
    scored = scored.astype({name: str for name in TEXT_COLUMNS})
    return scored[list(ROW_COLUMNS)]
