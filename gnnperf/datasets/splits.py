"""Which rows a network may see. What counts is a family or a device that it never saw."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from gnnperf.errors import DataError

HEADLINE_FAMILIES = ("lenet", "alexnet", "vgg")
"""Families of the headline benchmark: no network that is scored on them has seen any of their rows."""


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


def _split(frame: pd.DataFrame, column: str, held_out: Iterable[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    held = frame[column].isin(list(held_out))
    return frame[~held], frame[held]
