"""Quantiles of weighted values."""

from __future__ import annotations

import numpy as np


def weighted_quantile(values: np.ndarray, weights: np.ndarray, level: float) -> float:
    """Smallest of the values at or below which at least ``level`` of the weight lies; the largest for a level of 1."""
    values, weights = np.asarray(values, float), np.asarray(weights, float)
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    position = np.searchsorted(share, level - 1e-9)
    return float(values[order[min(position, len(order) - 1)]])
