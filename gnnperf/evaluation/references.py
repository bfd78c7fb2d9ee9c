"""What the network has to beat on a row: analytic models that learn nothing, and linear models of the training rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gnnperf.baselines.phases import FORWARD_PASSES
from gnnperf.baselines.work_regression import WorkRegression
from gnnperf.conditions import Conditions, Precision
from gnnperf.datasets.dataset import Dataset
from gnnperf.devices import Device, get_device
from gnnperf.devices.roofline import graph_roofline_ms
from gnnperf.graph import GraphArrays
from gnnperf.training.samples import conditions_of, graph_tensors, row_conditions, row_devices, row_group

_CHUNK = 64
LEAST_ROWS = 5  # below, a linear model is not worth its name


def row_graphs(frame: pd.DataFrame, dataset: Dataset) -> list[GraphArrays]:
    """The rows' graphs, each at its row's batch."""
    return [dataset.graphs[row.graph_key].at_batch(row.batch) for row in frame.itertuples(index=False)]


def row_cases(frame: pd.DataFrame) -> list[tuple[Device, Conditions]]:
    """Device and conditions of each row, as predictors take them."""
    return [(get_device(row.device), conditions_of(row)) for row in frame.itertuples(index=False)]


def roofline_latencies(frame: pd.DataFrame, dataset: Dataset) -> np.ndarray:
    """``[rows]`` ms by peak and bandwidth alone; a backward pass counts as two forward passes."""
    return np.array(
        [
            graph_roofline_ms(graph, get_device(row.device), Precision(row.precision)) * FORWARD_PASSES[row.phase]
            for graph, row in zip(row_graphs(frame, dataset), frame.itertuples(index=False), strict=True)
        ]
    )


def analytic_latencies(frame: pd.DataFrame, dataset: Dataset) -> np.ndarray:
    """``[rows]`` ms of the refined roofline: the untrained network, whose corrections and effects are zero."""
    import torch

    from gnnperf.nn.network import LatencyNetwork, NetworkConfig

    network = LatencyNetwork(NetworkConfig(depth=0, width=8, local_width=8)).eval()
    device, conditions = row_devices(frame), row_conditions(frame, (), ())
    predicted = np.empty(len(frame))
    with torch.no_grad():
        for begin in range(0, len(frame), _CHUNK):
            part = slice(begin, begin + _CHUNK)
            graphs = graph_tensors(row_graphs(frame.iloc[part], dataset))
            inputs = torch.from_numpy(device[part]), torch.from_numpy(conditions[part])
            predicted[part] = network(*graphs, *inputs).latency_ms.numpy()
    return predicted


def linear_latencies(train: pd.DataFrame, frame: pd.DataFrame, dataset: Dataset) -> np.ndarray:
    """``[rows]`` ms of :class:`WorkRegression`, one for each device, phase and precision.

    Fitted on the training rows of the same device, phase and precision that are whole networks outside the search
    spaces; NaN where there are fewer than five.
    """
    predicted = np.full(len(frame), np.nan)
    train = train[row_group(train) == "model"]
    for keys, places in places_by(frame, ["device", "phase", "precision"]):
        known = rows_with(train, keys)
        if len(known) >= LEAST_ROWS:
            model = WorkRegression().fit(row_graphs(known, dataset), known["latency_ms"].to_numpy())
            predicted[places] = model.predict(row_graphs(frame.iloc[places], dataset))
    return predicted


def places_by(frame: pd.DataFrame, columns: list[str]) -> list[tuple[dict, np.ndarray]]:
    """For each combination of values its values by column, and the positions of its rows."""
    groups = frame.reset_index(drop=True).groupby(columns, observed=True)
    return [(dict(zip(columns, values, strict=True)), part.index.to_numpy()) for values, part in groups]


def rows_with(frame: pd.DataFrame, values: dict) -> pd.DataFrame:
    """Rows that have these values by column."""
    for column, value in values.items():
        frame = frame[frame[column] == value]
    return frame
