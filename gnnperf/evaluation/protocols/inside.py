"""Inside a search space: networks that were not trained on among thousands of their like that were."""

from __future__ import annotations

import pandas as pd

from gnnperf.evaluation.protocols.folds import Fold, refuse_no_folds, to_score, without_families
from gnnperf.training.config import TrainingConfig


def inside_folds(frame: pd.DataFrame, config: TrainingConfig, device: str) -> list[Fold]:
    """One fold: the graphs of each search space that the configuration does not train on.

    Raises:
        DataError: no network of a search space was measured on the device.
        TrainingError: see :func:`gnnperf.training.split.split_rows`.
    """
    names, split = without_families(frame, config)
    test = to_score(split.in_space, device, config.seed)
    folds = [Fold("inside", names, split.train, test, in_space=True)] if len(test) else []
    return refuse_no_folds(folds, "search spaces", device)
