"""Protocols that train a network for each fold: which rows it may see, and which it is scored on."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from gnnperf.evaluation.protocols.batches import batch_folds
from gnnperf.evaluation.protocols.families import family_folds
from gnnperf.evaluation.protocols.folds import Fold
from gnnperf.evaluation.protocols.inside import inside_folds
from gnnperf.evaluation.protocols.stacks import stack_folds
from gnnperf.training.config import TrainingConfig

PROTOCOLS: dict[str, Callable[[pd.DataFrame, TrainingConfig, str], list[Fold]]] = {
    "families": family_folds,
    "batches": batch_folds,
    "stacks": stack_folds,
    "inside": inside_folds,
}
