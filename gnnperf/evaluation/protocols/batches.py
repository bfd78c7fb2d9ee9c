"""Batch sizes that were not measured: between those of training, and above them."""

from __future__ import annotations

import pandas as pd

from gnnperf.datasets.splits import split_above_batches, split_between_batches
from gnnperf.evaluation.protocols.folds import Fold, refuse_no_folds, to_score, without_families
from gnnperf.training.config import TrainingConfig


def batch_folds(frame: pd.DataFrame, config: TrainingConfig, device: str) -> list[Fold]:
    """Two folds, by what is held out of each network's batch sizes, on every device and under every stack.

    ``interpolate``: every second one, each between two that are trained on. ``extrapolate``: the larger half.

    Raises:
        DataError: no network was measured at several batch sizes on the device.
        TrainingError: see :func:`gnnperf.training.split.split_rows`.
    """
    names, split = without_families(frame, config)
    folds = []
    for name, split_batches in (("interpolate", split_between_batches), ("extrapolate", split_above_batches)):
        train, held = split_batches(split.train)
        folds.append(Fold(name, names, train, to_score(held, device, config.seed)))
    return refuse_no_folds([fold for fold in folds if len(fold.test)], "networks at several batch sizes", device)
