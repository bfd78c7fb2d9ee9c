"""What means something inside a search space alone, where thousands of networks of one kind were measured.

Each is learned from training rows of the same space, device, batch, phase and precision.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from gnnperf.adaptation.components import Components, take_apart
from gnnperf.adaptation.fit import fit_scales
from gnnperf.baselines.operator_counts import OperatorCountRegression
from gnnperf.datasets.dataset import Dataset
from gnnperf.evaluation.references import LEAST_ROWS, places_by, row_cases, row_graphs, rows_with
from gnnperf.graph.isomorphism import isomorphism_codes
from gnnperf.predictor import Predictor

ADAPTED_TO = 100
"""Measurements of a space that :func:`adapted_latencies` adapts to."""

_SPACE = ["family", "device", "batch", "phase", "precision"]
_MOST_OPERATOR_COUNT_ROWS = 4000  # thousands of graphs determine some fifty operators of a search space
_CHUNK = 32


def operator_count_latencies(train: pd.DataFrame, frame: pd.DataFrame, dataset: Dataset) -> np.ndarray:
    """``[rows]`` ms of :class:`OperatorCountRegression`; NaN where there are fewer than five training rows."""
    predicted = np.full(len(frame), np.nan)
    for keys, places in places_by(frame, _SPACE):
        known = rows_with(train, keys).iloc[:_MOST_OPERATOR_COUNT_ROWS]
        if len(known) >= LEAST_ROWS:
            model = OperatorCountRegression().fit(row_graphs(known, dataset), known["latency_ms"].to_numpy())
            predicted[places] = model.predict(row_graphs(frame.iloc[places], dataset))
    return predicted


def adapted_latencies(train: pd.DataFrame, frame: pd.DataFrame, dataset: Dataset, predictor: Predictor) -> np.ndarray:
    """``[rows]`` ms of the predictor after ``gnnperf adapt`` with 100 networks of the space; NaN where none is known.

    Who works inside a space and can measure does this; the networks are drawn at random, always the same ones.
    """
    predicted = np.full(len(frame), np.nan)
    for keys, places in places_by(frame, _SPACE):
        known = rows_with(train, keys)
        if known.empty:
            continue
        known = known.sample(min(ADAPTED_TO, len(known)), random_state=0)
        scales = fit_scales(row_components(known, dataset, predictor), known["latency_ms"].to_numpy())
        predicted[places] = row_components(frame.iloc[places], dataset, predictor).scaled(scales)[0]
    return predicted


def repeated_latencies(train: pd.DataFrame, frame: pd.DataFrame, dataset: Dataset) -> np.ndarray:
    """``[rows]`` ms that the same network took when it was measured under another name; NaN where it was not.

    Spaces describe many networks more than once: of a sum of two sums, each can be the node that is named. Mean over
    those that were trained on. Its error is that of measuring again: what a prediction can reach lies little below.
    """
    predicted = np.full(len(frame), np.nan)
    known = train[train["family"].isin(frame["family"].unique()) & train["device"].isin(frame["device"].unique())]
    names = sorted({*known["graph_key"].astype(str), *frame["graph_key"].astype(str)})
    codes = dict(zip(names, isomorphism_codes([dataset.graphs[name] for name in names]), strict=True))
    known, rows = (table.assign(code=table["graph_key"].astype(str).map(codes)) for table in (known, frame))
    for keys, places in places_by(rows, _SPACE):
        mean_ms = rows_with(known, keys).groupby("code")["latency_ms"].mean()
        predicted[places] = rows["code"].iloc[places].map(mean_ms)
    return predicted


def row_components(frame: pd.DataFrame, dataset: Dataset, predictor: Predictor) -> Components:
    """Predictions for rows of the schema, taken apart."""
    parts = []
    for begin in range(0, len(frame), _CHUNK):
        rows = frame.iloc[begin : begin + _CHUNK]
        parts.append(take_apart(predictor, row_graphs(rows, dataset), row_cases(rows)))
    return Components.concatenate(parts)
