"""gnnperf among the methods: as it is used, without being told the stack, as a sum of layers, and untrained."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from gnnperf.conditions import Conditions, Optimizer, Phase, Window
from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.graph_store import GraphStore
from gnnperf.devices import get_device
from gnnperf.errors import DataError
from gnnperf.evaluation.benchmark.networks import HEADLINE, left_out
from gnnperf.evaluation.benchmark.single_layers import single_layers
from gnnperf.evaluation.benchmark.truths import Truth
from gnnperf.evaluation.references import analytic_latencies
from gnnperf.predictor import DESCRIPTION_FILE, SHIPPED, Predictor
from gnnperf.training.predictor_files import read_config
from gnnperf.training.samples import conditions_of

FAMILIES_FILE = "families.csv"
"""Rows beside a predictor that networks trained without their family predicted (``gnnperf evaluate families``)."""
_ROW = ["source", "citation", "batch", "phase", "model"]  # tells a measured row from all others
_CHUNK = 64


class HeldOutPredictors:
    """For each fold a trained network that saw no row of its families.

    Args:
        predictor: folder of the one that was trained without the headline families; None: the shipped one.
        folds: folder of a finished ``gnnperf evaluate families``, whose networks predict the other families; None:
            those have no network, but the rows that ship with the predictor.

    Raises:
        DataError: ``predictor`` was trained on a headline family.
    """

    def __init__(self, predictor: Path | None, folds: Path | None) -> None:
        self.folder = predictor or SHIPPED
        self._folds = folds
        self._loaded: dict[str, Predictor] = {}
        self._refuse_seen(HEADLINE, self.folder)

    def get(self, fold: str) -> Predictor:
        """The fold's network.

        Raises:
            DataError: there is none, or it was trained on one of the families.
            GnnperfError: its folder is damaged.
        """
        if fold not in self._loaded:
            folder = self.folder if fold == HEADLINE else self._fold_folder(fold)
            self._refuse_seen(fold, folder)
            self._loaded[fold] = Predictor.load(folder)
        return self._loaded[fold]

    def has(self, fold: str) -> bool:
        """Whether there is a network for the fold."""
        return fold == HEADLINE or (self._folds is not None and (self._folds / fold / DESCRIPTION_FILE).is_file())

    def _fold_folder(self, fold: str) -> Path:
        if not self.has(fold):
            raise DataError(
                f"no network was trained without {fold}: give the folder of `gnnperf evaluate families` as --folds"
            )
        return self._folds / fold

    @staticmethod
    def _refuse_seen(fold: str, folder: Path) -> None:
        seen = set(left_out(fold)) - set(read_config(folder).data.held_out_families)
        if seen:
            raise DataError(f"{folder} was trained on {', '.join(sorted(seen))}: it cannot be scored on them")


@dataclass
class Gnnperf:
    """The network as it is used: one graph, one prediction."""

    predictors: HeldOutPredictors
    told_stack: bool
    name: str = field(init=False)
    what: str = field(init=False)
    paper: str = ""
    made_for: Truth = Truth.END_TO_END

    def __post_init__(self) -> None:
        if self.told_stack:
            self.name = "gnnperf"
            self.what = "our network; knows the stack, the timing window and the optimizer of a row"
        else:
            self.name = "gnnperf-untold"
            self.what = (
                "the same, told only network, device, batch and phase, as the others are; assumes the default stack"
            )

    def identity(self, fold: str) -> None:
        """Nothing is fitted."""

    def predict(self, fold: str, rows: pd.DataFrame, graphs: GraphStore) -> np.ndarray:
        """See :class:`gnnperf.evaluation.benchmark.method.Method`."""
        if not self.predictors.has(fold) and self.told_stack:
            return _shipped_rows(self.predictors.folder / FAMILIES_FILE, fold, rows)
        predictor = self.predictors.get(fold)
        cases = [
            (get_device(row.device), conditions_of(row) if self.told_stack else default_conditions(row.phase))
            for row in rows.itertuples(index=False)
        ]
        networks = [graphs[row.graph_key].at_batch(row.batch) for row in rows.itertuples(index=False)]
        return predict_in_chunks(predictor, networks, cases)


@dataclass
class GnnperfLayers:
    """The same network on every layer by itself; their sum is what a per-layer method with our network would say."""

    predictors: HeldOutPredictors
    name: str = "gnnperf-layers"
    what: str = "our network on each layer by itself, summed; knows the stack, and that each layer is a session's"
    paper: str = ""
    made_for: Truth = Truth.LAYER_SUM
    told_stack: bool = True

    def identity(self, fold: str) -> None:
        """Nothing is fitted."""

    def predict(self, fold: str, rows: pd.DataFrame, graphs: GraphStore) -> np.ndarray:
        """See :class:`gnnperf.evaluation.benchmark.method.Method`.

        A layer's input is on the device, as it is inside a network; ResPerfNet's sessions copy the output alone.
        """
        predictor = self.predictors.get(fold)
        predicted = np.empty(len(rows))
        for place, row in enumerate(rows.itertuples(index=False)):
            layers = [
                replace(layer, input_bytes=0.0) for layer in single_layers(graphs[row.layers_key].at_batch(row.batch))
            ]
            conditions = conditions_of(row)
            if row.truth == Truth.END_TO_END:
                conditions = replace(conditions, window=Window.DEVICE)
            cases = [(get_device(row.device), conditions)] * len(layers)
            predicted[place] = predict_in_chunks(predictor, layers, cases).sum()
        return predicted


@dataclass
class Analytic:
    """The network before training: no measurement, but the timing window and the optimizer are counted."""

    name: str = "analytic"
    what: str = "our network before training, a refined roofline; knows the timing window and the optimizer of a row"
    paper: str = ""
    made_for: Truth = Truth.END_TO_END
    told_stack: bool = True

    def identity(self, fold: str) -> None:
        """Nothing is fitted."""

    def predict(self, fold: str, rows: pd.DataFrame, graphs: GraphStore) -> np.ndarray:
        """See :class:`gnnperf.evaluation.benchmark.method.Method`."""
        return analytic_latencies(rows, Dataset(None, rows, graphs))


def default_conditions(phase: str) -> Conditions:
    """What ``gnnperf predict`` assumes for a user who names a phase alone."""
    optimizer = Optimizer.SGD if phase == Phase.TRAINING else Optimizer.NONE
    return Conditions(Phase(phase), optimizer=optimizer)


def predict_in_chunks(predictor: Predictor, graphs: list, cases: list) -> np.ndarray:
    """``[graphs]`` ms, a bounded number of graphs at a time."""
    parts = [
        predictor.latencies(graphs[begin : begin + _CHUNK], cases[begin : begin + _CHUNK])[0]
        for begin in range(0, len(graphs), _CHUNK)
    ]
    return np.concatenate(parts).astype(float)


def _shipped_rows(path: Path, fold: str, rows: pd.DataFrame) -> np.ndarray:
    """``[rows]`` ms that a network trained without the fold's family predicted when the predictor was made."""
    try:
        known = pd.read_csv(path)
        known = known[known["fold"] == fold].set_index(_ROW)["stack_only_ms"]
    except (OSError, ValueError, KeyError):
        raise DataError(
            f"{path} has no rows that were predicted without their family: give the folder of "
            "`gnnperf evaluate families` as --folds"
        ) from None
    known = known[~known.index.duplicated()]
    return known.reindex(pd.MultiIndex.from_frame(rows[_ROW])).to_numpy(float)
