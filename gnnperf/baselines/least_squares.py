"""Linear models of a latency with coefficients that are never negative: least squares on the relative error."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence, Sized
from typing import Self

import numpy as np

from gnnperf.errors import DataError
from gnnperf.graph.arrays import GraphArrays


def nonnegative_coefficients(features: np.ndarray, latency_ms: np.ndarray) -> np.ndarray:
    """``[F]`` coefficients >= 0 that minimise the sum of ((features @ coefficients - latency) / latency)^2.

    Non-negative, because no work takes negative time: it keeps the fit from cancelling one cost against another and so
    from breaking down on larger graphs than those fitted.

    Args:
        features: ``[n, F]``, any scale; columns of zeros get coefficient 0.
        latency_ms: ``[n]``, positive.
    """
    from scipy.optimize import nnls

    relative = features / latency_ms[:, None]
    scale = np.linalg.norm(relative, axis=0)
    used = scale > 0
    coefficients = np.zeros(features.shape[1])
    # Units differ by twelve orders of magnitude (MACs, operators), which the solver's tolerance would not survive.
    coefficients[used] = nnls(relative[:, used] / scale[used], np.ones(len(latency_ms)))[0] / scale[used]
    return coefficients


def checked_latency_ms(graphs: Sized, latency_ms: np.ndarray) -> np.ndarray:
    """``[n]`` float64 latencies, one positive finite number for each graph.

    Raises:
        DataError: there are none, their number is not that of the graphs, or one is not positive and finite.
    """
    latency_ms = np.asarray(latency_ms, np.float64)
    if latency_ms.shape != (len(graphs),) or not len(graphs):
        raise DataError(
            f"a model is fitted on one latency for each graph: got {len(graphs)} graphs and latencies of shape "
            f"{latency_ms.shape}"
        )
    if not (np.isfinite(latency_ms) & (latency_ms > 0)).all():
        row = int(np.flatnonzero(~(np.isfinite(latency_ms) & (latency_ms > 0)))[0])
        raise DataError(f"latency {latency_ms[row]} of graph {row} is not a positive number of ms")
    return latency_ms


class NonNegativeLeastSquares(ABC):
    """A model that is linear in features of a graph, with coefficients that are never negative.

    Attributes:
        coefficients: ``[F]`` ms for each unit of a feature; set by ``fit``.
    """

    coefficients: np.ndarray

    def fit(self, graphs: Sequence[GraphArrays], latency_ms: np.ndarray) -> Self:
        """Fit to ``n`` graphs and their ``[n]`` latencies.

        Raises:
            DataError: the latencies are not one positive number for each graph.
        """
        latency_ms = checked_latency_ms(graphs, latency_ms)
        self.coefficients = nonnegative_coefficients(self._features(graphs), latency_ms)
        return self

    def predict(self, graphs: Sequence[GraphArrays]) -> np.ndarray:
        """``[n]`` latencies in ms."""
        return self._features(graphs) @ self.coefficients

    @abstractmethod
    def _features(self, graphs: Sequence[GraphArrays]) -> np.ndarray:
        """``[n, F]``."""
