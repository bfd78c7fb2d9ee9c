"""The roofline with three constants fitted to measurements: what share of the peaks is reached, what a launch costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gnnperf.baselines.least_squares import NonNegativeLeastSquares
from gnnperf.conditions import Precision
from gnnperf.devices.device import Device
from gnnperf.devices.roofline import compute_and_memory_ms
from gnnperf.graph.arrays import GraphArrays
from gnnperf.graph.opgraph import OpClass


class RooflineRegression(NonNegativeLeastSquares):
    """Latency = a * time of compute-bound operators + b * time of memory-bound ones + c * operators.

    Unfitted, a = b = 1 and c = 0: :func:`gnnperf.devices.roofline.graph_roofline_ms`. Fitted by non-negative least
    squares on the relative error, 1 / a and 1 / b are the shares of the peaks that the software reaches, and c is the
    launch cost. The constants can be carried over to another device, through :attr:`coefficients`.

    Attributes:
        coefficients: ``[3]``: a, b (without unit) and c (ms).
    """

    def __init__(self, device: Device, precision: Precision = Precision.FP32) -> None:
        self.device = device
        self.precision = precision
        self.coefficients = np.array([1.0, 1.0, 0.0])

    def _features(self, graphs: Sequence[GraphArrays]) -> np.ndarray:
        features = np.empty((len(graphs), 3))
        for row, graph in zip(features, graphs, strict=True):
            compute_ms, memory_ms = compute_and_memory_ms(graph, self.device, self.precision)
            bound_by_compute = compute_ms > memory_ms
            row[0] = compute_ms[bound_by_compute].sum()
            row[1] = memory_ms[~bound_by_compute].sum()
            row[2] = (graph.op_class != OpClass.VIEW).sum()
        return features
