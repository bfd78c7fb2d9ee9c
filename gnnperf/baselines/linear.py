"""The latency as a linear function of multiply-accumulates, bytes and operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from gnnperf.baselines.least_squares import nonnegative_coefficients
from gnnperf.baselines.whole_models import row_graphs, whole_model_rows
from gnnperf.baselines.work_regression import work_features
from gnnperf.devices import get_device
from gnnperf.devices.features import DEVICE_FIELDS, device_features
from gnnperf.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from gnnperf.conditions import Phase
    from gnnperf.datasets.graph_store import GraphStore
    from gnnperf.devices import Device
    from gnnperf.graph import GraphArrays

_LEAST_ROWS = 5
_PEAK, _BANDWIDTH = DEVICE_FIELDS.index("peak_fp32_flops"), DEVICE_FIELDS.index("bandwidth_bytes_s")


class LinearBaseline:
    """Linear on MACs, bytes and operators, fitted on whole networks of the device.

    Latency = a * MACs + b * bytes + a constant for each operator of a class + a constant; least squares on the relative
    error with coefficients that are never negative (Lawson and Hanson: Solving Least Squares Problems, 1974, chapter
    23). One fit a device and phase.

    Ours to choose: MACs are counted in units of the device's peak and bytes in units of its bandwidth, so that a device
    without five rows of the phase takes one fit over all devices of its kind; search spaces are left out, whose
    thousands of small networks would decide everything.
    """

    name = "linear"
    paper = ""

    def __init__(self) -> None:
        self._coefficients: dict[tuple[str, str], np.ndarray] = {}

    def fit(self, rows: pd.DataFrame, graphs: GraphStore) -> Self:
        """See :class:`gnnperf.baselines.baseline.Baseline`; takes whole networks outside the search spaces."""
        rows = whole_model_rows(rows, most_in_spaces=0)
        devices = [get_device(slug) for slug in rows["device"]]
        scaled = work_features(row_graphs(rows, graphs)) * np.array([_scale(device) for device in devices])
        kinds = np.array([device.kind for device in devices])
        latency_ms = rows["latency_ms"].to_numpy()
        slugs, phases = rows["device"].to_numpy(str), rows["phase"].to_numpy(str)
        for phase in np.unique(phases):
            for names in (slugs, kinds):
                for name in np.unique(names):
                    chosen = (names == name) & (phases == phase)
                    if chosen.sum() >= _LEAST_ROWS:
                        coefficients = nonnegative_coefficients(scaled[chosen], latency_ms[chosen])
                        self._coefficients[str(name), str(phase)] = coefficients
        return self

    def predict(self, graph: GraphArrays, device: Device, batch: int, phase: Phase) -> float:
        """See :class:`gnnperf.baselines.baseline.Baseline`."""
        for name in (device.slug, device.kind):
            if (name, phase) in self._coefficients:
                return float(work_features([graph])[0] * _scale(device) @ self._coefficients[name, phase])
        raise DataError(f"{self.name} has no rows of {phase} on {device.slug} or any {device.kind}")


def _scale(device: Device) -> np.ndarray:
    """What :func:`work_features` are multiplied by: MACs to ms at the peak, bytes to ms at the bandwidth."""
    features = device_features(device)
    scale = np.ones(work_features([]).shape[1])
    scale[:2] = 2e3 / features[_PEAK], 1e3 / features[_BANDWIDTH]
    return scale
