"""Nearest neighbours: a network takes what similar networks took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from gnnperf.baselines.whole_models import row_graphs, whole_model_rows
from gnnperf.baselines.work_regression import work_features
from gnnperf.devices import get_device
from gnnperf.devices.roofline import graph_roofline_ms
from gnnperf.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from gnnperf.conditions import Phase
    from gnnperf.datasets.graph_store import GraphStore
    from gnnperf.devices import Device
    from gnnperf.graph import GraphArrays

_NEIGHBOURS = 3
_ANY = "any device"


class NearestNeighbourBaseline:
    """The three most similar networks measured on the device, their times scaled by the ratio of rooflines.

    Cover and Hart: Nearest neighbor pattern classification. IEEE Transactions on Information Theory 13(1), 1967, in its
    form for regression.

    Ours to choose: similar means near in the logarithms of multiply-accumulates, bytes and operators, in the share of
    each operator class among the operators (times four) and in the logarithm of the batch; the prediction is the
    geometric mean of the neighbours' time over roofline, weighted by the inverse distance, times the network's own
    roofline, so that it extrapolates. Neighbours are rows of the device and phase, of every stack; on a device without
    three, rows of all devices. At most 3,000 rows of search spaces are kept.
    """

    name = "nearest-neighbour"
    paper = "Cover and Hart: Nearest neighbor pattern classification, IEEE Trans. Information Theory 13(1), 1967"
    most_in_spaces = 3000

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = {}

    def fit(self, rows: pd.DataFrame, graphs: GraphStore) -> Self:
        """See :class:`gnnperf.baselines.baseline.Baseline`; takes whole networks."""
        rows = whole_model_rows(rows, self.most_in_spaces)
        own = row_graphs(rows, graphs)
        places = np.array([_place(graph) for graph in own])
        bounds = [graph_roofline_ms(g, get_device(slug)) for g, slug in zip(own, rows["device"], strict=True)]
        ratio = np.log(rows["latency_ms"].to_numpy() / np.maximum(bounds, 1e-9))
        slugs, phases = rows["device"].to_numpy(str), rows["phase"].to_numpy(str)
        for phase in np.unique(phases):
            for slug in (*np.unique(slugs), _ANY):
                chosen = (phases == phase) & ((slugs == slug) | (slug == _ANY))
                if chosen.sum() >= _NEIGHBOURS:
                    self._known[str(slug), str(phase)] = places[chosen], ratio[chosen]
        return self

    def predict(self, graph: GraphArrays, device: Device, batch: int, phase: Phase) -> float:
        """See :class:`gnnperf.baselines.baseline.Baseline`."""
        known = self._known.get((device.slug, phase)) or self._known.get((_ANY, phase))
        if known is None:
            raise DataError(f"{self.name} has no rows of {phase}")
        places, ratio = known
        distance = np.linalg.norm(places - _place(graph), axis=1)
        nearest = np.argsort(distance, kind="stable")[:_NEIGHBOURS]
        weight = 1 / (distance[nearest] + 1e-3)
        return float(np.exp(weight @ ratio[nearest] / weight.sum()) * graph_roofline_ms(graph, device))


def _place(graph: GraphArrays) -> np.ndarray:
    """Coordinates of a graph among graphs."""
    macs, moved_bytes, _, *counts = work_features([graph])[0]
    operators = max(sum(counts), 1.0)
    logs = np.log([max(macs, 1.0), max(moved_bytes, 1.0), operators, graph.batch])
    return np.concatenate([logs, 4 * np.array(counts) / operators])
