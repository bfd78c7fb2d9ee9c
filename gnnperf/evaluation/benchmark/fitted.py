"""Baselines among the methods: fitted once for each set of rows that they may see."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from gnnperf import __version__
from gnnperf.baselines.baseline import Baseline
from gnnperf.conditions import Phase
from gnnperf.datasets.graph_store import GraphStore
from gnnperf.devices import get_device
from gnnperf.errors import DataError
from gnnperf.evaluation.benchmark.training_rows import TrainingRows
from gnnperf.evaluation.benchmark.truths import Truth

# What decides a baseline's figures beside its rows, whose graphs are told by their keys.
_CODE = ("baselines", "devices")


@dataclass
class FittedBaseline:
    """A baseline, fitted on the rows of a fold, or on none.

    Attributes:
        name: see :class:`gnnperf.evaluation.benchmark.method.Method`, also for the other fields.
        make: a new baseline.
        training: what it learns from; None: nothing.
    """

    name: str
    what: str
    paper: str
    made_for: Truth
    make: Callable[[], Baseline]
    training: TrainingRows | None
    told_stack: bool = False

    def identity(self, fold: str) -> str | None:
        """Digest of code, name and training rows; None for what is not fitted."""
        if self.training is None:
            return None
        return fit_identity(self.name, self.training.digest(fold))

    def predict(self, fold: str, rows: pd.DataFrame, graphs: GraphStore) -> np.ndarray:
        """See :class:`gnnperf.evaluation.benchmark.method.Method`; fits first."""
        baseline = self.make()
        if self.training is not None:
            baseline = baseline.fit(self.training.rows(fold), self.training.graphs)
        predicted, reasons = np.full(len(rows), np.nan), []
        for place, row in enumerate(rows.itertuples(index=False)):
            key = row.layers_key if self.made_for == Truth.LAYER_SUM else row.graph_key
            graph = graphs[key].at_batch(row.batch)
            try:
                predicted[place] = baseline.predict(graph, get_device(row.device), row.batch, Phase(row.phase))
            except DataError as error:
                reasons.append(error)
        if len(reasons) == len(rows):
            raise reasons[0]
        return predicted


def fit_identity(name: str, rows_digest: str) -> str:
    """Digest of a baseline's code, name and training rows."""
    return hashlib.sha256(f"{code_digest()} {name} {rows_digest}".encode()).hexdigest()


@cache
def code_digest() -> str:
    """Digest of the version and of the code that baselines are made of: what was fitted by other code is not reused."""
    package = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256(__version__.encode())
    for folder in _CODE:
        for path in sorted((package / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
