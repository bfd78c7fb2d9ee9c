"""A table of operators for each search space, learned from whole networks of the space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from gnnperf.baselines.operator_counts import OperatorCountRegression
from gnnperf.baselines.whole_models import row_graphs
from gnnperf.datasets.splits import SEARCH_SPACES
from gnnperf.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from gnnperf.conditions import Phase
    from gnnperf.datasets.graph_store import GraphStore
    from gnnperf.devices import Device
    from gnnperf.graph import GraphArrays

_MOST_ROWS = 2000  # of a table: thousands of networks determine some fifty operators
_LEAST_ROWS = 20
_LEAST_KNOWN = 0.9  # share of a network's operators that have to be in a table


class OperatorLookupBaseline:
    """A lookup table per search space, device and batch: operators take what they take in the space's other networks.

    The tables of Wu et al.: FBNet. CVPR 2019, and Cai, Zhu, Han: ProxylessNAS. ICLR 2019, hold operators timed one by
    one; Dudziak et al.: BRP-NAS. NeurIPS 2020, use them as the baseline of NAS-Bench-201.

    Ours to choose: the entries are learned from whole networks (:class:`OperatorCountRegression`), which leaves nothing
    out and is more accurate. A network that shares fewer than nine in ten operators with every table of its device,
    batch and phase is outside of what the method is defined on.
    """

    name = "operator-lookup"
    paper = "Wu et al.: FBNet: Hardware-Aware Efficient ConvNet Design via Differentiable NAS, CVPR 2019"

    def __init__(self) -> None:
        self._tables: dict[tuple[str, int, str], list[OperatorCountRegression]] = {}

    def fit(self, rows: pd.DataFrame, graphs: GraphStore) -> Self:
        """See :class:`gnnperf.baselines.baseline.Baseline`; takes networks of search spaces."""
        rows = rows[rows["family"].isin(SEARCH_SPACES) & (rows["precision"] == "fp32")]
        if rows.empty:
            raise DataError(f"{self.name} is fitted on networks of search spaces, and there are none")
        for (_, slug, batch, phase), part in rows.groupby(["family", "device", "batch", "phase"], observed=True):
            if len(part) > _MOST_ROWS:
                part = part.iloc[np.sort(np.random.default_rng(0).choice(len(part), _MOST_ROWS, replace=False))]
            if len(part) >= _LEAST_ROWS:
                table = OperatorCountRegression().fit(row_graphs(part, graphs), part["latency_ms"].to_numpy())
                self._tables.setdefault((slug, int(batch), phase), []).append(table)
        return self

    def predict(self, graph: GraphArrays, device: Device, batch: int, phase: Phase) -> float:
        """See :class:`gnnperf.baselines.baseline.Baseline`."""
        tables = self._tables.get((device.slug, batch, phase), [])
        best = max(tables, key=lambda table: table.known_share(graph), default=None)
        if best is None or best.known_share(graph) < _LEAST_KNOWN:
            raise DataError(f"no search space with this network was measured on {device.slug} at batch {batch}")
        return float(best.predict([graph])[0])
