"""What an adaptation is worth on networks that it was not fitted to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gnnperf.adaptation.components import Components
from gnnperf.adaptation.fit import fit_scales

_FOLDS = 10


def left_out_latencies(parts: Components, latency_ms: np.ndarray, models: Sequence[str]) -> np.ndarray:
    """``[n]`` latencies of measured cases, each by scales that were fitted without any row of its network.

    NaN where all rows are of one network.

    Args:
        parts: predictions for the n measured cases, taken apart.
        latency_ms: ``[n]`` measured.
        models: names of the networks.
    """
    predicted_ms = np.full(len(parts), np.nan)
    names = np.array(models)
    distinct = np.unique(names)
    if len(distinct) < 2:
        return predicted_ms
    for group in np.array_split(np.random.default_rng(0).permutation(distinct), min(_FOLDS, len(distinct))):
        held = np.isin(names, group)
        predicted_ms[held] = parts[held].scaled(fit_scales(parts[~held], latency_ms[~held]))[0]
    return predicted_ms
