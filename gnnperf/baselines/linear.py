"""Linear models of the latency: what a learned network has to beat.

Inside a search space, :class:`OperatorCountBaseline` is hard to beat (2 % inside NAS-Bench-201); it says nothing about
any other network. :class:`LinearBaseline` applies to every network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from gnnperf.baselines.least_squares import NonNegativeLeastSquares, checked_latency_ms
from gnnperf.devices.roofline import memory_bytes
from gnnperf.graph.arrays import GraphArrays
from gnnperf.graph.opgraph import OpClass


class LinearBaseline(NonNegativeLeastSquares):
    """Latency = a * MACs + b * bytes + a constant for each operator of a class + a constant.

    Non-negative least squares on the relative error. One instance knows one device under one set of conditions.

    Attributes:
        coefficients: ``[3 + len(OpClass)]`` ms for each MAC, byte, graph and operator of each class; set by ``fit``.
    """

    def _features(self, graphs: Sequence[GraphArrays]) -> np.ndarray:
        features = np.zeros((len(graphs), 3 + len(OpClass)))
        for row, graph in zip(features, graphs, strict=True):
            runs = graph.op_class != OpClass.VIEW
            row[0] = graph.column("macs").sum()
            row[1] = memory_bytes(graph)[runs].sum()
            row[2] = 1
            row[3:] = np.bincount(graph.op_class[runs], minlength=len(OpClass))
        return features


class OperatorCountBaseline:
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
