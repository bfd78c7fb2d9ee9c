"""The roofline: peak and bandwidth of the data sheet, nothing learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from gnnperf.baselines.phases import FORWARD_PASSES
from gnnperf.devices.roofline import graph_roofline_ms

if TYPE_CHECKING:
    import pandas as pd

    from gnnperf.conditions import Phase
    from gnnperf.datasets.graph_store import GraphStore
    from gnnperf.devices import Device
    from gnnperf.graph import GraphArrays


class RooflineBaseline:
    """Peak and bandwidth alone: the longer of compute and memory time, summed over the operators.

    Williams, Waterman, Patterson: Roofline: an insightful visual performance model for multicore architectures.
    Communications of the ACM 52(4), 2009; :func:`gnnperf.devices.roofline.roofline_ms`.

    Ours to choose: every tensor passes through memory; a backward pass counts as two forward passes.
    """

    name = "roofline"
    paper = "Williams, Waterman, Patterson: Roofline, Communications of the ACM 52(4), 2009"

    def fit(self, rows: pd.DataFrame, graphs: GraphStore) -> Self:
        """Nothing is learned."""
        return self

    def predict(self, graph: GraphArrays, device: Device, batch: int, phase: Phase) -> float:
        """See :class:`gnnperf.baselines.baseline.Baseline`."""
        return graph_roofline_ms(graph, device) * FORWARD_PASSES[phase]
