"""Leave one family out: what the figures are for a network that is like nothing in the training set."""

from __future__ import annotations

import pandas as pd

from gnnperf.datasets.splits import HEADLINE_FAMILIES
from gnnperf.evaluation.protocols.folds import Fold, refuse_no_folds, to_score, whole_models, without_families
from gnnperf.training.config import TrainingConfig

HEADLINE = "headline"


def family_folds(frame: pd.DataFrame, config: TrainingConfig, device: str) -> list[Fold]:
    """A fold for each family that was measured on the device, and one for the headline families together.

    A fold's family is kept out of its training on every device, from every source, in every phase; the headline
    families are kept out of all.

    Raises:
        DataError: no network was measured on the device.
        TrainingError: see :func:`gnnperf.training.split.split_rows`.
    """
    measured = set(whole_models(frame, device)["family"].astype(str).unique())
    folds = [_fold(frame, config, device, family, (family,)) for family in sorted(measured - set(HEADLINE_FAMILIES))]
    if measured & set(HEADLINE_FAMILIES):
        folds.insert(0, _fold(frame, config, device, HEADLINE, HEADLINE_FAMILIES))
    return refuse_no_folds([fold for fold in folds if len(fold.test)], "families", device)


def _fold(frame: pd.DataFrame, config: TrainingConfig, device: str, name: str, families: tuple[str, ...]) -> Fold:
    names, split = without_families(frame, config, *families)
    held_out = split.held_out[split.held_out["family"].isin(families)]
    return Fold(name, names, split.train, to_score(held_out, device, config.seed))
