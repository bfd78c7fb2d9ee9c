"""A fold: rows to train on, and rows that are scored by what was trained on them."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from gnnperf.datasets.splits import HEADLINE_FAMILIES, SEARCH_SPACES, sample_models
from gnnperf.errors import DataError
from gnnperf.training.config import Focus, TrainingConfig
from gnnperf.training.split import Split, split_rows

_NETWORKS = 600  # that are scored of a family, at each of its batch sizes; more only narrow the figure


@dataclass(frozen=True)
class Fold:
    """One training, and what it is scored on.

    Attributes:
        name: also that of its folder.
        held_out_families: of which no row is in ``train``; their zoo graphs are not among the unlabelled graphs.
        train: rows of the schema.
        test: rows of the schema, whole models.
        in_space: whether other networks of the scored search spaces are in ``train``, and teach references.
        focus: whether the end of training is about the devices that the configuration names.
    """

    name: str
    held_out_families: tuple[str, ...]
    train: pd.DataFrame
    test: pd.DataFrame
    in_space: bool = False
    focus: bool = True

    def config(self, config: TrainingConfig) -> TrainingConfig:
        """The configuration of this fold's training."""
        data = config.data.model_copy(update={"held_out_families": self.held_out_families})
        focus = config.optimisation.focus if self.focus else Focus()
        optimisation = config.optimisation.model_copy(update={"focus": focus})
        update = {"name": f"{config.name}-{self.name}", "data": data, "optimisation": optimisation}
        return config.model_copy(update=update)


def without_families(frame: pd.DataFrame, config: TrainingConfig, *families: str) -> tuple[tuple[str, ...], Split]:
    """What the configuration trains on, but without the headline families, its own held-out ones and ``families``.

    Returns:
        Names of all families left out, and the split.

    Raises:
        TrainingError: see :func:`split_rows`.
    """
    names = tuple(dict.fromkeys((*HEADLINE_FAMILIES, *config.data.held_out_families, *families)))
    return names, split_rows(frame, config.data.model_copy(update={"held_out_families": names}), config.seed)


def whole_models(frame: pd.DataFrame, device: str) -> pd.DataFrame:
    """Rows of whole models on one device."""
    return frame[(frame["device"] == device) & (frame["kind"] == "model")]


def to_score(held_out: pd.DataFrame, device: str, seed: int) -> pd.DataFrame:
    """What is scored of the rows held out: whole models on one device, at most 600 networks of a search space."""
    return sample_models(whole_models(held_out, device), _NETWORKS, seed)


def outside_search_spaces(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of networks that people designed; thousands of rows of a search space would drown them in a mean."""
    return rows[~rows["family"].isin(SEARCH_SPACES)]


def refuse_no_folds(folds: list[Fold], what: str, device: str) -> list[Fold]:
    """The folds.

    Raises:
        DataError: there are none.
    """
    if not folds:
        raise DataError(f"no {what} to evaluate on {device}: import more sources, or choose another device")
    return folds
