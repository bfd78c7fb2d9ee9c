"""What every baseline offers, whatever it is inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    import pandas as pd

    from gnnperf.conditions import Phase
    from gnnperf.datasets.graph_store import GraphStore
    from gnnperf.devices import Device
    from gnnperf.graph import GraphArrays


@runtime_checkable
class Baseline(Protocol):
    """A published (or obvious) way to predict a latency, built to be compared with.

    Fits are seeded: the same rows give the same predictions. Everything is FP32.

    Attributes:
        name: key in :data:`gnnperf.baselines.BASELINES`, for tables.
        paper: authors, title, venue and year; "" for what needs no source.
    """

    name: str
    paper: str

    def fit(self, rows: pd.DataFrame, graphs: GraphStore) -> Self:
        """Learn from measurements.

        Args:
            rows: in the schema of :mod:`gnnperf.datasets.schema`; what has to stay unseen (families, devices) has been
                left out. A baseline takes the rows that it is defined on: layers, or whole networks.
            graphs: the rows' graphs, by ``graph_key``.

        Raises:
            DataError: there are no rows that the baseline can be fitted on.
        """
        ...

    def predict(self, graph: GraphArrays, device: Device, batch: int, phase: Phase) -> float:
        """Latency in ms of the whole batch.

        Args:
            graph: the network at ``batch`` (:meth:`gnnperf.graph.GraphArrays.at_batch`).
            device: where it runs.
            batch: the batch size.
            phase: what is timed; a training step includes the backward pass.

        Raises:
            DataError: the method is not defined there: no rows of the phase, an unseen device where it has no device
                features, a network without any layer that it knows.
        """
        ...
