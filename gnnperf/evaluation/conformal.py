"""Scale and quantile of conformal intervals from the errors of families that were left out of training in turn.

The unit is a fold, the families that were left out together: rows of one family are alike, so a hundred of them say
little more than ten. Scores of a fold share a weight of 1, and the quantile is that of the weighted scores of all folds
(pooling of hierarchical data; Dunn, Wasserman, Ramdas 2022). For one more fold, exchangeable with K others, a quantile
of level t covers at least ``t * K / (K + 1)`` (Lee, Barber, Willett 2023). With the ten or fewer families that anyone
has measured that guarantees far less than 90 %, so the level is raised until folds that are predicted by a calibration
on the others are covered to 90 % on average. That average is an estimate, not a guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from gnnperf.errors import DataError
from gnnperf.intervals import COVERAGE, PHASES, SCALE_TERMS, Intervals
from gnnperf.quantile import weighted_quantile

FEWEST_FOLDS = 3
_POOLED_WIDENING = 1.25  # of a phase with fewer folds than that, which borrows the other's scores
_LEVELS = np.arange(COVERAGE, 1.0001, 0.005)
_LAUNCHES = np.arange(0.0, 1.01, 0.02)  # what a share of launches of 1 may add to the expected log ratio

# Networks that were trained on, asked without the effect of the machine that measured them, are off by two thirds to
# nine tenths as much as families left out: a distance of 0 takes at most a third off the scale at a distance of 1.
_SLOPE_OVER_CONSTANT = 0.5
# What each unmeasured respect adds to the expected log ratio. Declared, as leaving out families says nothing of it.
# Operators: a class that nobody measured may be off by a factor of two. Devices: 6-15 % in all on GPUs never seen
# (NeuSight, ASPLOS 2025), 11 % (CDMPP, EuroSys 2024), more the less alike they are; a network trained on GPUs is 0.2
# further off on the Xeons of HELP's NAS-Bench-201 rows, and these are simple networks. Stacks differ by 10-40 % on one
# network and GPU (dlinfbench). Precision: FP64 rows of families left out, predicted from FP32 and FP16, are 0.3 further
# off.
_UNMEASURED = {
    "operators": 0.7,
    "device": 0.05,
    "device_distance": 0.1,
    "device_kind": 0.25,
    "stack": 0.15,
    "precision": 0.3,
    "phase": 0.3,
}


class TooFewFolds(DataError):
    """There are not folds enough to calibrate on."""


@dataclass(frozen=True)
class Scores:
    """Errors on R rows, each predicted by a network that saw nothing of its fold.

    Attributes:
        error: ``[R]`` absolute log ratio of truth and prediction.
        terms: ``[R, len(SCALE_TERMS)]``.
        fold: ``[R]`` names.
        phase: ``[R]`` of :data:`gnnperf.intervals.PHASES`.
        is_space: ``[R]`` whether the row is of a search space.
    """

    error: np.ndarray
    terms: np.ndarray
    fold: np.ndarray
    phase: np.ndarray
    is_space: np.ndarray

    def where(self, chosen: np.ndarray) -> Scores:
        """Some of the rows."""
        return Scores(*(getattr(self, item.name)[chosen] for item in fields(self)))

    def fold_weights(self) -> np.ndarray:
        """``[R]`` weights by which every fold counts as one."""
        _, code, size = np.unique(self.fold, return_inverse=True, return_counts=True)
        return 1 / size[code]

    def folds(self, phase: str) -> list[str]:
        """Folds with rows of a phase."""
        return sorted(set(self.fold[self.phase == phase]))

    def network_folds(self, phase: str) -> list[str]:
        """Folds of whole networks outside the search spaces; all, where there are only search spaces."""
        return self.where(~self.is_space).folds(phase) or self.folds(phase)


def fit_intervals(scores: Scores) -> tuple[Intervals, dict[str, Intervals]]:
    """Intervals from all folds, and for each fold those from the others at the same level.

    Raises:
        TooFewFolds: there are fewer than :data:`FEWEST_FOLDS`.
    """
    folds = np.unique(scores.fold)
    if len(folds) < FEWEST_FOLDS:
        raise TooFewFolds(
            f"intervals need at least {FEWEST_FOLDS} folds of families left out, beside the families that the "
            f"predictor itself holds out; the scored rows have {len(folds)}"
        )
    others = {str(fold): scores.where(scores.fold != fold) for fold in folds}
    own_quantile = [phase for phase in PHASES if len(scores.network_folds(phase)) >= FEWEST_FOLDS]
    for level in _LEVELS:
        left_out = {fold: _fit(part, level, own_quantile) for fold, part in others.items()}
        if _mean_coverage(scores, left_out) >= COVERAGE:
            break
    fitted = _fit(scores, level, own_quantile)
    report = {
        "level": round(float(level), 4),
        "folds": {phase: scores.folds(phase) for phase in PHASES},
        "guaranteed_coverage": {phase: _guarantee(level, len(scores.network_folds(phase))) for phase in PHASES},
    }
    return Intervals(fitted.coefficients, fitted.quantile, report), left_out


def _fit(scores: Scores, level: float, own_quantile: list[str]) -> Intervals:
    """Scale and quantiles from whole networks, and what launches add from search spaces.

    Search spaces are small networks, alike and measured by one group, that wait for their launches: they say how far
    off such networks are, and nothing of others. So the share of launches adds to the scale what covers them.
    """
    networks = scores.where(~scores.is_space) if not scores.is_space.all() else scores
    spaces = scores.where(scores.is_space)
    scale = fit_scale(networks)
    for launches in _LAUNCHES:
        scale["launches"] = float(launches)
        found = Intervals(dict(scale), quantiles(networks, scale, level, own_quantile))
        if not len(spaces.error) or _coverage(spaces, found) >= COVERAGE:
            break
    return found


def _coverage(scores: Scores, intervals: Intervals) -> float:
    """Share of rows that are covered, each fold counting as one."""
    quantile = np.array([intervals.quantile[phase] for phase in scores.phase])
    covered = scores.error <= quantile * intervals.scale(scores.terms)
    return float(np.average(covered, weights=scores.fold_weights()))


def _guarantee(level: float, folds: int) -> float:
    return round(float(level) * folds / (folds + 1), 3)


def fit_scale(scores: Scores) -> dict[str, float]:
    """Coefficients of the expected error, none negative, by non-negative least squares; every fold counts as one.

    Constant and distance are fitted, the slope of the latter at least half of the former; others are declared, and
    launches left at 0.
    """
    from scipy.optimize import nnls

    coefficients = {name: _UNMEASURED.get(name, 0.0) for name in SCALE_TERMS}
    declared = scores.terms @ np.array(list(coefficients.values()))
    distance = scores.terms[:, SCALE_TERMS.index("distance")]
    terms = np.column_stack([1 + _SLOPE_OVER_CONSTANT * distance, distance])
    root = np.sqrt(scores.fold_weights())
    base, slope = nnls(terms * root[:, None], (scores.error - declared) * root)[0]
    # Without a constant the interval of a measured network would be empty.
    base = max(base, 0.1 * weighted_quantile(scores.error, scores.fold_weights(), 0.5), 1e-3)
    coefficients["constant"] = float(base)
    coefficients["distance"] = float(slope + _SLOPE_OVER_CONSTANT * base)
    return coefficients


def quantiles(scores: Scores, scale: dict[str, float], level: float, own_quantile: list[str]) -> dict[str, float]:
    """Quantiles of the normalised scores by phase.

    A phase that is not in ``own_quantile`` takes the larger of its own and of all scores' quantile, and 25 % more.
    """

    def quantile(part: Scores) -> float:
        return weighted_quantile(part.error / Intervals(scale, {}).scale(part.terms), part.fold_weights(), level)

    found = {}
    for phase in PHASES:
        of_phase = scores.where(scores.phase == phase)
        own = quantile(of_phase) if len(of_phase.error) else 0.0
        found[phase] = own if phase in own_quantile and own else _POOLED_WIDENING * max(own, quantile(scores))
    return found


def _mean_coverage(scores: Scores, left_out: dict[str, Intervals]) -> float:
    """Mean over phases and folds of the coverage by the others; of whole networks, where there are any.

    One space whose host is unlike the others' would else make every interval as wide as the widest.
    """
    covered, is_network = [], []
    for phase in PHASES:
        for fold in scores.folds(phase):
            here = scores.where((scores.fold == fold) & (scores.phase == phase))
            intervals = left_out[fold]
            covered.append(float(np.mean(here.error <= intervals.quantile[phase] * intervals.scale(here.terms))))
            is_network.append(not here.is_space.all())
    networks = [value for value, network in zip(covered, is_network, strict=True) if network]
    return float(np.mean(networks or covered))
