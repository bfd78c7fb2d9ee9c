"""Which rows a network may see. What counts is a family or a device that it never saw."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from gnnperf.errors import DataError

HEADLINE_FAMILIES = ("lenet", "alexnet", "vgg")
"""Families of the headline benchmark: no network that is scored on them has seen any of their rows."""

SEARCH_SPACES = ("nasbench201", "fbnet", "ofa")
"""Families of hundreds of thousands of rows, whose networks are all alike."""

# One network under one set of conditions, from one source, on one device: its rows differ in their batch.
_SERIES = ("source", "device", "stack", "framework_version", "model", "precision", "phase", "window", "optimizer")


def split_by_family(frame: pd.DataFrame, held_out: Iterable[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of all other families, and rows of the families held out (whatever their device, stack or phase)."""
    return _split(frame, "family", held_out)


def split_by_device(frame: pd.DataFrame, held_out: Iterable[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of all other devices, and rows of the devices held out."""
    return _split(frame, "device", held_out)


def split_by_graph(frame: pd.DataFrame, fraction: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split at random inside a search space: ``fraction`` of the structures, with all their rows, are held out.

    Different batches, devices and stacks of one structure stay together, so none of it leaks. Rows whose graph is
    not built yet are told apart by their model.

    Raises:
        DataError: ``fraction`` is not between 0 and 1.
    """
    if not 0 <= fraction <= 1:
        raise DataError(f"the fraction held out has to be between 0 and 1, not {fraction}")
    key = frame["graph_key"].astype(str).to_numpy(object)
    missing = key == ""
    key[missing] = frame["model"].astype(str).to_numpy(object)[missing]
    names, code = np.unique(key.astype(str), return_inverse=True)
    chosen = np.random.default_rng(seed).permutation(len(names)) < round(fraction * len(names))
    held = chosen[code]
    return frame[~held], frame[held]


def split_by_stack(frame: pd.DataFrame, held_out: Iterable[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of all other stacks, and rows of the stacks held out (whatever their device, family or kind)."""
    return _split(frame, "stack", held_out)


def split_between_batches(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Hold out every second batch size of a series, each between a smaller and a larger one that are kept.

    A series is one network under one set of conditions, from one source, on one device. Single layers, and networks
    that were measured at fewer than three batch sizes, are kept whole.
    """
    rank, count = _batch_ranks(frame)
    held = (rank % 2 == 1) & (rank < count - 1)
    return frame[~held], frame[held]


def split_above_batches(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Hold out the larger half of a series' batch sizes (the smaller part, where their number is odd).

    Series as in :func:`split_between_batches`; those of one batch size are kept whole.
    """
    rank, count = _batch_ranks(frame)
    held = rank >= (count + 1) // 2
    return frame[~held], frame[held]


def _batch_ranks(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """``[rows]`` place of a row's batch among its series' batch sizes, from 0, and ``[rows]`` how many it has."""
    rank, count = np.zeros(len(frame), int), np.ones(len(frame), int)
    models = (frame["kind"] == "model").to_numpy()
    if models.any():
        series = frame[models].groupby(list(_SERIES), observed=True)["batch"]
        rank[models] = series.rank(method="dense").to_numpy(int) - 1
        count[models] = series.transform("nunique").to_numpy(int)
    return rank, count


def sample_models(frame: pd.DataFrame, most: int, seed: int) -> pd.DataFrame:
    """All rows of at most ``most`` networks of each family, drawn at random; smaller families are kept whole."""
    chosen = []
    for family in sorted(frame["family"].astype(str).unique()):
        names = np.sort(frame.loc[frame["family"] == family, "model"].astype(str).unique())
        if len(names) > most:
            names = np.random.default_rng(seed).choice(names, most, replace=False)
        chosen += list(names)
    return frame[frame["model"].isin(chosen)]


def _split(frame: pd.DataFrame, column: str, held_out: Iterable[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    held = frame[column].isin(list(held_out))
    return frame[~held], frame[held]
