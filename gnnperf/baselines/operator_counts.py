"""Latency as a sum over operators, each with a constant of its own: a table learned from whole networks.

Inside a search space this is hard to beat (2 % inside NAS-Bench-201); it says nothing about any other network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from gnnperf.baselines.least_squares import checked_latency_ms
from gnnperf.graph.arrays import GraphArrays
from gnnperf.graph.opgraph import OpClass


class OperatorCountRegression:
    """Latency = a constant for each distinct operator, times how often the graph has it, + a constant.

    Operators are the same where class and every quantity of :data:`gnnperf.graph.arrays.NODE_FIELDS` agree. Ridge
    regression on the relative error. Inside a search space, whose networks are built from few operators, this is a
    table of latencies learned from whole networks; operators that were not among those fitted count as nothing.

    Args:
        alpha: ridge penalty for each graph fitted, on the constants as shares of the mean latency.
    """

    def __init__(self, alpha: float = 1e-6) -> None:
        self.alpha = alpha

    def fit(self, graphs: Sequence[GraphArrays], latency_ms: np.ndarray) -> Self:
        """Fit to ``n`` graphs and their ``[n]`` latencies.

        Raises:
            DataError: the latencies are not one positive number for each graph.
        """
        from sklearn.linear_model import Ridge

        latency_ms = checked_latency_ms(graphs, latency_ms)
        distinct = dict.fromkeys(signature for graph in graphs for signature in _signatures(graph))
        self._columns = {signature: column for column, signature in enumerate(distinct)}
        self._mean_ms, self._least_ms = latency_ms.mean(), latency_ms.min()
        share = latency_ms / self._mean_ms
        self._ridge = Ridge(alpha=self.alpha * len(graphs)).fit(self._counts(graphs), share, sample_weight=share**-2)
        return self

    def predict(self, graphs: Sequence[GraphArrays]) -> np.ndarray:
        """``[n]`` latencies in ms, kept above a hundredth of the least that was fitted."""
        return np.maximum(self._ridge.predict(self._counts(graphs)) * self._mean_ms, self._least_ms / 100)

    def known_share(self, graph: GraphArrays) -> float:
        """Share of the graph's operators that were among those fitted; 0 of a graph without operators."""
        signatures = _signatures(graph)
        return sum(signature in self._columns for signature in signatures) / max(len(signatures), 1)

    def _counts(self, graphs: Sequence[GraphArrays]) -> np.ndarray:
        counts = np.zeros((len(graphs), len(self._columns)))
        for row, graph in zip(counts, graphs, strict=True):
            for signature in _signatures(graph):
                if signature in self._columns:
                    row[self._columns[signature]] += 1
        return counts


def _signatures(graph: GraphArrays) -> list[bytes]:
    """What makes an operator the same as another, for each that runs."""
    runs = graph.op_class != OpClass.VIEW
    rows = np.column_stack([graph.op_class[runs], graph.node[runs]])
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel().tolist()
