"""What methods may learn from, fold by fold."""

from __future__ import annotations

import hashlib
from enum import StrEnum

import pandas as pd

from gnnperf.conditions import Precision
from gnnperf.datasets.graph_store import GraphStore
from gnnperf.datasets.schema import Kind
from gnnperf.devices import DeviceKind, get_device
from gnnperf.evaluation.benchmark.networks import left_out
from gnnperf.training.split import is_anomalous


class Learns(StrEnum):
    """Kinds of rows that a method is fitted on."""

    NOTHING = "nothing"
    LAYERS = "layers"
    NETWORKS = "networks"


class TrainingRows:
    """FP32 rows on GPUs, without the families of a fold; the headline families are in no fold's.

    Args:
        frame: rows of the schema.
        graphs: their graphs.
        learns: which of them.
        devices: leave out all others; empty: all of them.
    """

    def __init__(self, frame: pd.DataFrame, graphs: GraphStore, learns: Learns, devices: tuple[str, ...] = ()) -> None:
        self.graphs = graphs
        kind = Kind.LAYER if learns == Learns.LAYERS else Kind.MODEL
        frame = frame[(frame["kind"] == kind) & (frame["precision"] == Precision.FP32) & ~is_anomalous(frame)]
        gpus = [slug for slug in frame["device"].unique() if get_device(slug).kind == DeviceKind.GPU]
        self._frame = frame[frame["device"].isin(devices or gpus)]
        self._digests: dict[str, str] = {}

    def rows(self, fold: str) -> pd.DataFrame:
        """What a fit of the fold sees."""
        return self._frame[~self._frame["family"].isin(left_out(fold))]

    def digest(self, fold: str) -> str:
        """The same for the same rows; folds that leave out nothing of these rows share one."""
        if fold not in self._digests:
            rows = self.rows(fold)
            content = pd.util.hash_pandas_object(rows, index=False).to_numpy().tobytes()
            self._digests[fold] = hashlib.sha256(content).hexdigest()
        return self._digests[fold]
