"""Errors of a network that is still being trained, without exporting it."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import torch

from gnnperf.datasets.graph_store import GraphStore
from gnnperf.errors import TrainingError
from gnnperf.nn.network import LatencyNetwork
from gnnperf.training.samples import graph_tensors, row_conditions, row_devices

_CHUNK = 64  # graphs at a time
_TIMINGS = 3


class ValidationRows:
    """Rows as the network takes them, to be predicted again and again.

    They are predicted for their stack and device alone, as a user's file is: without a measurement campaign.

    Args:
        rows: of the schema.
        graphs: where their graphs are.
    """

    def __init__(self, rows: pd.DataFrame, graphs: GraphStore) -> None:
        self._rows = rows.reset_index(drop=True)
        self._inputs = []
        for begin in range(0, len(rows), _CHUNK):
            part = self._rows.iloc[begin : begin + _CHUNK]
            arrays = [graphs[str(row.graph_key)].at_batch(int(row.batch)) for row in part.itertuples()]
            self._inputs.append((graph_tensors(arrays), torch.from_numpy(row_devices(part)), part))

    def __len__(self) -> int:
        return len(self._rows)

    @torch.no_grad()
    def predict(self, network: LatencyNetwork) -> np.ndarray:
        """``[rows]`` ms."""
        was_training = network.training
        network.eval()
        try:
            latencies = [
                network(*graphs, device, torch.from_numpy(row_conditions(part, (), network.config.devices))).latency_ms
                for graphs, device, part in self._inputs
            ]
        finally:
            network.train(was_training)
        return torch.cat(latencies).numpy()

    def mape(self, network: LatencyNetwork) -> dict[str, dict[str, float]]:
        """Family -> phase -> mean absolute percentage error, in per cent.

        Raises:
            TrainingError: a prediction is not finite.
        """
        ape = 100 * np.abs(self.predict(network) / self._rows["latency_ms"].to_numpy() - 1)
        if not np.isfinite(ape).all():
            raise TrainingError("the predictions are no longer finite: lower the learning rates")
        means = pd.Series(ape).groupby([self._rows["family"].astype(str), self._rows["phase"].astype(str)]).mean()
        figures: dict[str, dict[str, float]] = {}
        for (family, phase), value in means.items():
            figures.setdefault(family, {})[phase] = float(value)
        return figures

    def predict_cpu_ms(self, network: LatencyNetwork) -> float:
        """CPU time of a prediction, in milliseconds a graph; the least of three, as other work only adds to it."""
        times = []
        for _ in range(_TIMINGS):
            begin = time.process_time()
            self.predict(network)
            times.append(1e3 * (time.process_time() - begin) / len(self))
        return min(times)


def phase_means(mape: dict[str, dict[str, float]]) -> dict[str, float]:
    """Phase -> mean over the families that have it: each family counts once, whatever its rows."""
    by_phase: dict[str, list[float]] = {}
    for figures in mape.values():
        for phase, value in figures.items():
            by_phase.setdefault(phase, []).append(value)
    return {phase: float(np.mean(values)) for phase, values in sorted(by_phase.items())}


def weighted_mape(mape: dict[str, dict[str, float]], inference_weight: float) -> float:
    """The figure that a study minimises, in per cent; a phase without rows has no weight."""
    means = phase_means(mape)
    weights = {"inference": inference_weight, "training": 1 - inference_weight}
    if sum(weights[phase] for phase in means) == 0:  # the phase that counts is measured in none of the families
        return float("nan")
    return float(np.average(list(means.values()), weights=[weights[phase] for phase in means]))
