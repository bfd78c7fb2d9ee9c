"""The fits that the untrained-network baselines share: least squares on the relative error."""

from __future__ import annotations

from collections.abc import Sized

import numpy as np

from gnnperf.errors import DataError


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
            f"a baseline is fitted on one latency for each graph: got {len(graphs)} graphs and latencies of shape "
            f"{latency_ms.shape}"
        )
    if not (np.isfinite(latency_ms) & (latency_ms > 0)).all():
        row = int(np.flatnonzero(~(np.isfinite(latency_ms) & (latency_ms > 0)))[0])
        raise DataError(f"latency {latency_ms[row]} of graph {row} is not a positive number of ms")
    return latency_ms
