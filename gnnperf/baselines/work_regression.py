"""Latency as a linear function of the work that a graph holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gnnperf.baselines.least_squares import NonNegativeLeastSquares
from gnnperf.devices.roofline import memory_bytes
from gnnperf.graph.arrays import GraphArrays
from gnnperf.graph.opgraph import OpClass


class WorkRegression(NonNegativeLeastSquares):
    """Latency = a * MACs + b * bytes + a constant for each operator of a class + a constant.

    Non-negative least squares on the relative error. One instance knows one device under one set of conditions.

    Attributes:
        coefficients: ``[3 + len(OpClass)]`` ms for each MAC, byte, graph and operator of each class; set by ``fit``.
    """

    def _features(self, graphs: Sequence[GraphArrays]) -> np.ndarray:
        return work_features(graphs)


def work_features(graphs: Sequence[GraphArrays]) -> np.ndarray:
    """``[n, 3 + len(OpClass)]`` MACs, bytes moved, 1, and the number of operators of each class; views do not count."""
    features = np.zeros((len(graphs), 3 + len(OpClass)))
    for row, graph in zip(features, graphs, strict=True):
        runs = graph.op_class != OpClass.VIEW
        row[0] = graph.column("macs").sum()
        row[1] = memory_bytes(graph)[runs].sum()
        row[2] = 1
        row[3:] = np.bincount(graph.op_class[runs], minlength=len(OpClass))
    return features
