"""Measured rows beside what the exported predictor and the baselines say of them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gnnperf.conditions import Precision
from gnnperf.datasets.dataset import Dataset
from gnnperf.devices import get_device
from gnnperf.devices.roofline import graph_roofline_ms
from gnnperf.predictor import Predictor
from gnnperf.training.samples import campaign_name, conditions_of

_CHUNK = 64


def score(frame: pd.DataFrame, dataset: Dataset, predictor: Predictor, *, with_campaign: bool = True) -> pd.DataFrame:
    """Predict every row.

    Args:
        frame: rows of the schema.
        dataset: where their graphs are.
        predictor: the exported network, exactly as it ships.
        with_campaign: use the measurement campaign's learned effect where the network knows the campaign (from other
            families' rows); without it the row is predicted for its stack alone, as a user's file is.

    Returns:
        The frame with ``predicted_ms``, ``roofline_ms`` and ``ape`` added.
    """
    predicted, roofline = np.empty(len(frame)), np.empty(len(frame))
    rows = list(frame.itertuples(index=False))
    for begin in range(0, len(rows), _CHUNK):
        chunk = rows[begin : begin + _CHUNK]
        graphs = [dataset.graphs[row.graph_key].at_batch(row.batch) for row in chunk]
        cases = [(get_device(row.device), conditions_of(row)) for row in chunk]
        campaigns = [campaign_name(row.source, row.device) for row in chunk] if with_campaign else None
        predicted[begin : begin + len(chunk)] = predictor.latencies(graphs, cases, campaigns)[0]
        roofline[begin : begin + len(chunk)] = [
            graph_roofline_ms(graph, device, Precision(row.precision)) * _roofline_passes(row.phase)
            for graph, (device, _), row in zip(graphs, cases, chunk, strict=True)
        ]
    scored = frame.copy()
    scored["predicted_ms"], scored["roofline_ms"] = predicted, roofline
    scored["ape"] = np.abs(predicted / frame["latency_ms"].to_numpy() - 1)
    return scored


def _roofline_passes(phase: str) -> float:
    """Forward passes that a phase is worth: gradients of inputs and of weights cost about a forward pass each."""
    return {"inference": 1.0, "forward": 1.0, "backward": 2.0, "training": 3.0}[phase]
