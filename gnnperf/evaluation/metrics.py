"""How far predictions are from the truth."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np


@dataclass(frozen=True)
class Metrics:
    """Summary over rows; all but ``rows`` are fractions (0.1 is 10 %).

    Attributes:
        rows: how many.
        mape: mean absolute percentage error.
        median_ape: its median.
        worst_ape: its largest.
        within_10: share of rows off by at most 10 %.
        within_20: share of rows off by at most 20 %.
        bias: exp of the mean log ratio, minus 1: positive where predictions are too long.
        kendall_tau: rank correlation (tau-b), NaN for fewer than two rows.
    """

    rows: int
    mape: float
    median_ape: float
    worst_ape: float
    within_10: float
    within_20: float
    bias: float
    kendall_tau: float

    def to_dict(self) -> dict:
        """Plain data for JSON; what is not defined is None."""
        return {name: None if value != value else value for name, value in asdict(self).items()}


def summarise(predicted_ms: np.ndarray, latency_ms: np.ndarray) -> Metrics:
    """Metrics of ``[rows]`` predictions against ``[rows]`` measurements; all NaN where there are no rows."""
    predicted_ms, latency_ms = np.asarray(predicted_ms, float), np.asarray(latency_ms, float)
    if not len(latency_ms):
        return Metrics(0, *[float("nan")] * 7)
    ape = np.abs(predicted_ms / latency_ms - 1)
    tau = float("nan")
    if len(latency_ms) > 1:
        from scipy.stats import kendalltau

        tau = float(kendalltau(predicted_ms, latency_ms).statistic)
    return Metrics(
        rows=len(latency_ms),
        mape=float(ape.mean()),
        median_ape=float(np.median(ape)),
        worst_ape=float(ape.max()),
        within_10=float((ape <= 0.10).mean()),
        within_20=float((ape <= 0.20).mean()),
        bias=float(np.exp(np.log(predicted_ms / latency_ms).mean()) - 1),
        kendall_tau=tau,
    )
