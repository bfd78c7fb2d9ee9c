"""What a trial trains on and is judged by: families of the device that are left out of training in turn."""

from __future__ import annotations

import pandas as pd

from gnnperf.conditions import Phase, Precision
from gnnperf.datasets.splits import HEADLINE_FAMILIES, SEARCH_SPACES
from gnnperf.errors import DataError
from gnnperf.evaluation.protocols.folds import Fold, to_score, whole_models, without_families
from gnnperf.training.config import TrainingConfig

_LEAST_ROWS = 20  # of a family with a fold of its own
SCORED_PHASES = (Phase.INFERENCE, Phase.TRAINING)


def narrowed(config: TrainingConfig, frame: pd.DataFrame, device: str) -> TrainingConfig:
    """The configuration on FP32 rows of the sources that measured the device alone.

    Most of what counts on that device, and a third of the time of all rows.
    """
    sources = set(frame.loc[(frame["device"] == device) & (frame["use"] == "train"), "source"].astype(str))
    sources &= set(config.data.sources or sources)
    data = config.data.model_copy(update={"precisions": (str(Precision.FP32),), "sources": tuple(sorted(sources))})
    return config.model_copy(update={"data": data})


def validation_folds(frame: pd.DataFrame, config: TrainingConfig, device: str) -> list[Fold]:
    """Folds of families that were measured on the device in FP32, the family with most rows first.

    LeNet, AlexNet and VGG, what else the configuration holds out, and search spaces are neither trained on (the spaces
    are) nor scored: a design chosen by them would no longer be blind to them. Families of fewer than 20 rows are left
    out together, in one fold.

    Raises:
        DataError: no other family was measured on the device.
        TrainingError: see :func:`gnnperf.training.split.split_rows`.
    """
    never = {*HEADLINE_FAMILIES, *config.data.held_out_families, *SEARCH_SPACES}
    rows = _scored(whole_models(frame, device))
    sizes = rows.loc[~rows["family"].isin(never), "family"].astype(str).value_counts()
    sizes = sizes.sort_index().sort_values(ascending=False, kind="stable")
    if sizes.empty:
        raise DataError(
            f"nothing to tune by: {device} has no FP32 row of a family outside {', '.join(sorted(never))}; "
            "import more sources, or choose another device"
        )
    groups = [(family,) for family, size in sizes.items() if size >= _LEAST_ROWS]
    small = tuple(family for family, size in sizes.items() if size < _LEAST_ROWS)
    folds = []
    for families in [*groups, *([small] if small else [])]:
        left_out, split = without_families(frame, config, *families)
        test = split.held_out[split.held_out["family"].isin(families)]
        folds.append(Fold("+".join(families), left_out, split.train, _scored(to_score(test, device, config.seed))))
    return folds


def _scored(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[(rows["precision"] == Precision.FP32) & rows["phase"].isin([str(phase) for phase in SCORED_PHASES])]
