"""How far predictions are from the truth."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

_NAN = float("nan")
_LEAST_TO_RANK = 3  # of two rows, chance alone ranks every other pair right
_DRAWS = 1000


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


@dataclass(frozen=True)
class RowMetrics(Metrics):
    """:class:`Metrics` of a table of scored rows, and what takes their families, conditions and intervals.

    Attributes:
        ci_low: lower end of the bootstrap 95 % interval of ``mape``.
        ci_high: its upper end.
        mape_families: mean over families of their own MAPE: each family counts once.
        kendall_tau_within: mean rank correlation of networks under the same conditions (source, stack, batch, phase,
            precision, window), over groups of three rows or more; NaN without one.
        coverage: share of the truths inside their 90 % interval, NaN without intervals.
        width: mean width of the interval over the prediction, NaN without intervals.
    """

    ci_low: float
    ci_high: float
    mape_families: float
    kendall_tau_within: float
    coverage: float
    width: float


def summarise(predicted_ms: np.ndarray, latency_ms: np.ndarray) -> Metrics:
    """Metrics of ``[rows]`` predictions against ``[rows]`` measurements; all NaN where there are no rows."""
    predicted_ms, latency_ms = np.asarray(predicted_ms, float), np.asarray(latency_ms, float)
    if not len(latency_ms):
        return Metrics(0, *[_NAN] * 7)
    ape = np.abs(predicted_ms / latency_ms - 1)
    return Metrics(
        rows=len(latency_ms),
        mape=float(ape.mean()),
        median_ape=float(np.median(ape)),
        worst_ape=float(ape.max()),
        within_10=float((ape <= 0.10).mean()),
        within_20=float((ape <= 0.20).mean()),
        bias=float(np.exp(np.log(predicted_ms / latency_ms).mean()) - 1),
        kendall_tau=_kendall_tau(predicted_ms, latency_ms),
    )


def _kendall_tau(predicted_ms: np.ndarray, latency_ms: np.ndarray) -> float:
    if len(latency_ms) < 2:
        return _NAN
    from scipy.stats import kendalltau

    return float(kendalltau(predicted_ms, latency_ms).statistic)


def summarise_rows(rows: pd.DataFrame, column: str = "stack_only_ms", seed: int = 0) -> RowMetrics:
    """Metrics of one column of a table of scored rows (:data:`gnnperf.evaluation.scoring.ROW_COLUMNS`).

    Rows where that column is NaN are left out. The intervals belong to ``stack_only_ms``; they are not reported for
    other columns.

    Args:
        rows: the table, or a part of it.
        column: of the predictions.
        seed: of the bootstrap.
    """
    rows = rows[rows[column].notna()]
    predicted, truth = rows[column].to_numpy(float), rows["latency_ms"].to_numpy(float)
    ci_low, ci_high = bootstrap_mape(rows, column, seed)
    coverage, width = _intervals(rows) if column == "stack_only_ms" else (_NAN, _NAN)
    ape = np.abs(predicted / truth - 1)
    by_family = pd.Series(ape).groupby(rows["family"].to_numpy()).mean()
    return RowMetrics(
        **asdict(summarise(predicted, truth)),
        ci_low=ci_low,
        ci_high=ci_high,
        mape_families=float(by_family.mean()),
        kendall_tau_within=_tau_within(rows, column),
        coverage=coverage,
        width=width,
    )


def bootstrap_mape(
    rows: pd.DataFrame, column: str = "stack_only_ms", seed: int = 0, draws: int = _DRAWS
) -> tuple[float, float]:
    """Bootstrap 95 % interval of the MAPE: whole networks are drawn again, with replacement, within each family.

    Rows of one network are alike (its batches, its stacks), so they are drawn together; how many networks a family
    has is kept. Families themselves are not drawn, so the interval says nothing of families that are not there, and a
    family of one network adds nothing to its width; NaN where no family has two.
    """
    rows = rows[rows[column].notna()]
    if rows.empty:
        return _NAN, _NAN
    ape = np.abs(rows[column].to_numpy(float) / rows["latency_ms"].to_numpy(float) - 1)
    frame = pd.DataFrame({"ape": ape, "family": rows["family"].to_numpy(), "model": rows["model"].to_numpy()})
    clusters = frame.groupby(["family", "model"], observed=True)["ape"].agg(["sum", "size"])
    if len(clusters) == frame["family"].nunique():
        return _NAN, _NAN
    random = np.random.default_rng(seed)
    total, count = np.zeros(draws), np.zeros(draws)
    for _, family in clusters.groupby(level="family", observed=True):
        networks = len(family)
        times = random.multinomial(networks, np.full(networks, 1 / networks), size=draws)  # [draws, networks]
        total += times @ family["sum"].to_numpy()
        count += times @ family["size"].to_numpy()
    low, high = np.percentile(total / count, [2.5, 97.5])
    return float(low), float(high)


def _intervals(rows: pd.DataFrame) -> tuple[float, float]:
    """Coverage and mean relative width over the rows that have an interval."""
    rows = rows[rows["low_ms"].notna() & rows["high_ms"].notna()]
    if rows.empty:
        return _NAN, _NAN
    inside = rows["latency_ms"].between(rows["low_ms"], rows["high_ms"])
    return float(inside.mean()), float(((rows["high_ms"] - rows["low_ms"]) / rows["stack_only_ms"]).mean())


def _tau_within(rows: pd.DataFrame, column: str) -> float:
    conditions = ["source", "device", "stack", "batch", "phase", "precision", "window"]
    values = [
        _kendall_tau(part[column].to_numpy(), part["latency_ms"].to_numpy())
        for _, part in rows.groupby(conditions, observed=True)
        if len(part) >= _LEAST_TO_RANK
    ]
    values = [value for value in values if value == value]
    return float(np.mean(values)) if values else _NAN
