"""90 % prediction intervals: how far off the prediction of a network of a family never seen may be.

Split conformal prediction with normalised scores (Vovk, Gammerman, Shafer 2005; Lei et al. 2018, section 5.2): the
score of a measured row is ``|log(measured / predicted)| / scale``. The interval of a prediction is the prediction times
``exp(+-quantile * scale)``, with a quantile of the scores of families that were left out of training in turn. The scale
grows with the distance to the training data, with the share of launches, and with everything that was not measured.

Calibration is in :mod:`gnnperf.evaluation.calibration`; here is what a prediction needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gnnperf.conditions import Conditions
from gnnperf.devices import Device
from gnnperf.domain import UNMEASURED, Domain
from gnnperf.graph import GraphArrays
from gnnperf.similarity import launch_share, operator_ms

COVERAGE = 0.9
SCALE_TERMS = ("constant", "distance", "launches", *UNMEASURED)
PHASES = ("inference", "training")  # forward and backward count as training
_LARGEST_LOG_RATIO = 4.0  # a factor of 55: beyond, the interval says "unknown" already


def scale_terms(distances: np.ndarray, launches: np.ndarray, unmeasured: np.ndarray) -> np.ndarray:
    """``[G, len(SCALE_TERMS)]``.

    Args:
        distances: ``[G]`` to the training data.
        launches: ``[G]`` shares of the time in launching kernels, see :func:`gnnperf.similarity.launch_share`: hosts
            differ more than devices, and nobody describes theirs.
        unmeasured: ``[G, len(UNMEASURED)]``.
    """
    return np.column_stack([np.ones(len(distances)), distances, launches, unmeasured])


def input_terms(
    graphs: Sequence[GraphArrays], cases: Sequence[tuple[Device, Conditions]], domain: Domain, distances: np.ndarray
) -> np.ndarray:
    """``[G, len(SCALE_TERMS)]`` of inputs.

    Args:
        graphs: G graphs.
        cases: device and conditions of each.
        domain: what was measured.
        distances: ``[G]`` to the training data.
    """
    launches, unmeasured = [], []
    for graph, case in zip(graphs, cases, strict=True):
        times_ms = operator_ms(graph, *case)
        launches.append(launch_share(*times_ms))
        unmeasured.append(domain.unmeasured(graph, sum(times_ms), *case))
    return scale_terms(distances, np.array(launches), np.stack(unmeasured))


@dataclass(frozen=True)
class Intervals:
    """A calibration.

    Attributes:
        coefficients: of each of :data:`SCALE_TERMS`; none is negative, so that whatever is less like the measurements
            never has the narrower interval.
        quantile: of the scores, by phase.
        report: how it was made and what it covers, for people.
    """

    coefficients: dict[str, float]
    quantile: dict[str, float]
    report: dict = field(default_factory=dict, compare=False)

    def scale(self, terms: np.ndarray) -> np.ndarray:
        """``[G]`` expected size of the log ratio of truth and prediction, of ``[G, len(SCALE_TERMS)]`` terms."""
        return terms @ np.array([self.coefficients[name] for name in SCALE_TERMS])

    def bounds(self, latency_ms: np.ndarray, terms: np.ndarray, phases: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """``[G]`` lower and ``[G]`` upper ends.

        Args:
            latency_ms: ``[G]`` predictions.
            terms: ``[G, len(SCALE_TERMS)]`` as :func:`scale_terms` gives them.
            phases: of each, from :data:`PHASES`.
        """
        quantile = np.array([self.quantile[phase] for phase in phases])
        factor = np.exp(np.minimum(quantile * self.scale(terms), _LARGEST_LOG_RATIO))
        return latency_ms / factor, latency_ms * factor

    def to_dict(self) -> dict:
        """Plain data for JSON."""
        return {"coverage": COVERAGE, "coefficients": self.coefficients, "quantile": self.quantile, **self.report}

    @classmethod
    def from_dict(cls, values: dict) -> Intervals:
        """Inverse of :meth:`to_dict`.

        Raises:
            ValueError, TypeError, KeyError: the values are no calibration.
        """
        coefficients = {name: float(values["coefficients"][name]) for name in SCALE_TERMS}
        quantile = {phase: float(values["quantile"][phase]) for phase in PHASES}
        for name, value in (coefficients | quantile).items():
            if not (np.isfinite(value) and value >= 0):
                raise ValueError(f"{name} of the intervals is {value}")
        report = {k: v for k, v in values.items() if k not in ("coverage", "coefficients", "quantile")}
        return cls(coefficients, quantile, report)
