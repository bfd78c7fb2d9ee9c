"""One network over a design space of devices: how its latency depends on clock, bandwidth, cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gnnperf.conditions import Conditions
from gnnperf.devices import Device
from gnnperf.devices.roofline import graph_roofline_ms
from gnnperf.errors import ModelFileError
from gnnperf.graph import OpGraph, to_arrays
from gnnperf.predictor import Predictor

_OPERATORS_AT_ONCE = 50_000  # of all points that one run of the network takes; bounds its memory


@dataclass(frozen=True)
class SweepPoint:
    """One device of the design space.

    Attributes:
        values: the figures that were varied.
        device: the device that they make.
        latency_ms: of the whole batch.
        low_ms: lower end of the 90 % interval, None where the predictor was not calibrated.
        high_ms: upper end.
        roofline_ms: bound from peak and bandwidth alone, forward pass; not a prediction.
    """

    values: dict[str, float]
    device: Device
    latency_ms: float
    low_ms: float | None
    high_ms: float | None
    roofline_ms: float


def sweep(
    predictor: Predictor, graph: OpGraph, space: Sequence[tuple[dict[str, float], Device]], conditions: Conditions
) -> list[SweepPoint]:
    """Predict one graph on every device of a design space: read once, and run for many devices at a time.

    Args:
        predictor: a trained network.
        graph: the network to predict.
        space: as :func:`gnnperf.devices.variation.design_space` gives it.
        conditions: the same for all points.

    Raises:
        ModelFileError: the graph has no operators.
    """
    if not graph.nodes:
        raise ModelFileError(f"{graph.name} computes nothing: all of it is constant, or it has no operators")
    arrays = to_arrays(graph)
    points = []
    at_once = max(1, _OPERATORS_AT_ONCE // arrays.num_nodes)
    for begin in range(0, len(space), at_once):
        part = space[begin : begin + at_once]
        graphs, cases = [arrays] * len(part), [(device, conditions) for _, device in part]
        latency_ms, _ = predictor.latencies(graphs, cases)
        low_ms, high_ms = predictor.intervals(graphs, cases, latency_ms)
        for (values, device), latency, low, high in zip(part, latency_ms, low_ms, high_ms, strict=True):
            bound_ms = graph_roofline_ms(arrays, device, conditions.precision)
            points.append(SweepPoint(values, device, float(latency), _known(low), _known(high), bound_ms))
    return points


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
