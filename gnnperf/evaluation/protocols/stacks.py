"""Leave one software stack out: what the figures are under a framework that nobody measured."""

from __future__ import annotations

import pandas as pd

from gnnperf.datasets.splits import split_by_stack
from gnnperf.evaluation.protocols.folds import Fold, refuse_no_folds, to_score, whole_models, without_families
from gnnperf.training.config import TrainingConfig


def stack_folds(frame: pd.DataFrame, config: TrainingConfig, device: str) -> list[Fold]:
    """A fold for each stack under which other than headline families were measured on the device.

    Its rows, single layers too, are kept out of training on every device, so that no effect of the stack is learned.

    Raises:
        DataError: no network was measured on the device.
        TrainingError: see :func:`gnnperf.training.split.split_rows`.
    """
    names, split = without_families(frame, config)
    folds = []
    for stack in sorted(whole_models(split.train, device)["stack"].astype(str).unique()):
        train, held = split_by_stack(split.train, [stack])
        folds.append(Fold(stack, names, train, to_score(held, device, config.seed)))
    return refuse_no_folds([fold for fold in folds if len(fold.train)], "stacks", device)
