"""The frame of every per-layer method: a model for each kind of layer, and a network's latency as the layers' sum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

import numpy as np

from gnnperf.baselines.layers import LayerKind, LayerTable, rows_of_kind
from gnnperf.conditions import Optimizer, Phase
from gnnperf.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from gnnperf.datasets.graph_store import GraphStore
    from gnnperf.devices import Device
    from gnnperf.graph import GraphArrays

LayerModel = Callable[[LayerTable], np.ndarray]
"""``[L]`` ms of L layers of the kind that the model was fitted on."""
_LEAST_ROWS = 10  # of a kind, to fit a model on


class LayerSumBaseline(ABC):
    """A network takes as long as its layers, each run by itself.

    A model is fitted for each kind of layer that the source measured; operators of no such kind count as nothing, as
    in the papers. A training step is one with SGD, and a backward pass what such a step takes beyond a forward pass:
    the measurements know training as forward, backward and update together.

    Attributes:
        source: whose layers are fitted, the ``source`` of the rows.
        most_rows: rows of a kind that are fitted, drawn at random.
        seed: of that draw, and of the models.
    """

    name: str
    paper: str
    most_rows = 30_000

    def __init__(self, source: str, seed: int = 0) -> None:
        self.source = source
        self.seed = seed
        self._models: dict[LayerKind, LayerModel] = {}
        self._knows_training = False

    def fit(self, rows: pd.DataFrame, graphs: GraphStore) -> Self:
        """See :class:`gnnperf.baselines.baseline.Baseline`; takes the source's layers."""
        layers = self._layer_rows(rows)
        if layers.empty:
            raise DataError(f"{self.name} is fitted on single layers of {self.source}, and there are none")
        generator = np.random.default_rng(self.seed)
        self._models = {}
        for kind in LayerKind:
            of_kind = rows_of_kind(layers, kind)
            if len(of_kind) > self.most_rows:
                of_kind = of_kind.iloc[np.sort(generator.choice(len(of_kind), self.most_rows, replace=False))]
            if len(of_kind) >= _LEAST_ROWS:
                self._models[kind] = self._fit_layers(
                    LayerTable.of_rows(of_kind, kind), of_kind["latency_ms"].to_numpy()
                )
        self._knows_training = bool((layers["phase"] == Phase.TRAINING.value).any())
        return self

    def predict(self, graph: GraphArrays, device: Device, batch: int, phase: Phase) -> float:
        """See :class:`gnnperf.baselines.baseline.Baseline`."""
        if phase in (Phase.INFERENCE, Phase.FORWARD):
            return self._sum_ms(graph, device, Optimizer.NONE)
        if not self._knows_training:
            raise DataError(f"{self.name} knows forward passes alone: {self.source} timed nothing else")
        step_ms = self._sum_ms(graph, device, Optimizer.SGD)
        if phase == Phase.TRAINING:
            return step_ms
        # Both are predictions: where they contradict each other, a tenth of the step is left.
        return max(step_ms - self._sum_ms(graph, device, Optimizer.NONE), step_ms / 10)

    def layer_latencies(self, rows: pd.DataFrame) -> np.ndarray:
        """``[rows]`` ms of single layers; NaN where there is no model of their kind."""
        predicted = np.full(len(rows), np.nan)
        numbered = rows.reset_index(drop=True)
        for kind, model in self._models.items():
            of_kind = rows_of_kind(numbered, kind)
            if len(of_kind):
                predicted[of_kind.index] = model(LayerTable.of_rows(of_kind, kind))
        return predicted

    def _layer_rows(self, rows: pd.DataFrame) -> pd.DataFrame:
        return rows[(rows["kind"] == "layer") & (rows["source"] == self.source) & (rows["precision"] == "fp32")]

    def _sum_ms(self, graph: GraphArrays, device: Device, optimizer: Optimizer) -> float:
        return float(sum(self._models[table.kind](table).sum() for table in self._tables(graph, device, optimizer)))

    def _tables(self, graph: GraphArrays, device: Device, optimizer: Optimizer) -> list[LayerTable]:
        """The graph's layers that there are models for; not none."""
        known = [table for table in LayerTable.of_graph(graph, device, optimizer) if table.kind in self._models]
        if not known:
            raise DataError(f"the network has none of the layers that {self.name} knows: {', '.join(self._models)}")
        return known

    @abstractmethod
    def _fit_layers(self, layers: LayerTable, latency_ms: np.ndarray) -> LayerModel:
        """A model of one kind of layer, fitted to ``[L]`` latencies."""
