"""PerfNet and PerfNetV2: a layer's time is preparing its input, executing it, and handing its output back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from gnnperf.baselines.fitting import Standardiser, dense_layers, fit_module, from_table, maple, start_at_mean
from gnnperf.baselines.layer_sum import LayerModel, LayerSumBaseline
from gnnperf.baselines.layers import HARDWARE_FIELDS, LayerKind, LayerTable
from gnnperf.conditions import Optimizer
from gnnperf.datasets.readers.justus2018 import NAME as JUSTUS2018

if TYPE_CHECKING:
    from gnnperf.devices import Device
    from gnnperf.graph import GraphArrays

_DENSE, _DROPOUT, _COPY_WIDTH = 128, 0.1, 16
_COPY_SHARE = 0.1  # of a layer's time that each copy takes before anything is learned


class PerfNetV2Baseline(LayerSumBaseline):
    """Per-layer networks of three parts, with MAPLE loss, for inference and training on GPUs seen and unseen.

    Wang, Liao, Kao, Liang, Hung: PerfNet: Platform-Aware Performance Modeling for Deep Neural Networks. RACS 2020; and
    Toward Accurate Platform-Aware Performance Modeling for Deep Neural Networks (PerfNetV2). ACM SIGAPP Applied
    Computing Review 21(1), 2021. As there: pre-processing (host to device), execution and post-processing (device to
    host) are predicted apart; GPU figures are inputs, so that an unseen GPU can be asked for; the optimizer, one-hot,
    tells training steps from forward passes; the loss is MAPLE. A network's time is the pre-processing of its first
    layer, the execution of all, and the post-processing of its last: between layers nothing moves.

    Ours to choose: the authors profile each part, while public rows have the whole alone. So the three outputs are
    positive and add up to the row, and the networks of the two copies see nothing but the bytes copied and the GPU,
    which leaves all that depends on the layer to the execution. Execution: three dense layers of 128, dropout 0.1, on
    logarithms; the copies: one of 16. Fitted on the layers of Justus et al. 2018, whose inputs and outputs stay on the
    device (the copies are a session's fixed cost there); 30,000 rows of a kind and 20 passes. Poolings were not timed;
    with activations and normalisation they count as nothing.
    """

    name = "perfnetv2"
    paper = (
        "Wang, Liao, Kao, Liang, Hung: Toward Accurate Platform-Aware Performance Modeling for Deep Neural Networks, "
        "ACM SIGAPP Applied Computing Review 21(1), 2021"
    )
    epochs = 20

    def __init__(self, seed: int = 0) -> None:
        super().__init__(JUSTUS2018, seed)
        self._parts: dict[LayerKind, LayerModel] = {}

    def _fit_layers(self, layers: LayerTable, latency_ms: np.ndarray) -> LayerModel:
        scale = Standardiser(_inputs(layers))

        def make() -> nn.Module:
            return _ThreeParts(len(scale.mean), latency_ms)

        network = fit_module(
            make, from_table(scale(_inputs(layers))), latency_ms, maple, epochs=self.epochs, seed=self.seed
        )

        def parts(table: LayerTable) -> np.ndarray:
            with torch.no_grad():
                return network.parts(scale(_inputs(table))).numpy().astype(float)

        self._parts[layers.kind] = parts
        return lambda table: parts(table).sum(axis=1)

    def _sum_ms(self, graph: GraphArrays, device: Device, optimizer: Optimizer) -> float:
        tables = self._tables(graph, device, optimizer)
        position = np.concatenate([table.position for table in tables])
        parts = np.concatenate([self._parts[table.kind](table) for table in tables])
        return float(parts[position.argmin(), 0] + parts[:, 1].sum() + parts[position.argmax(), 2])


class _ThreeParts(nn.Module):
    """``[L, F]`` inputs to ``[L]`` ms."""

    def __init__(self, inputs: int, latency_ms: np.ndarray) -> None:
        super().__init__()
        self.before = _copy(latency_ms)
        self.after = _copy(latency_ms)
        last = nn.Linear(_DENSE, 1)
        start_at_mean(last, latency_ms)
        self.execution = nn.Sequential(*dense_layers(inputs, _DENSE, _DENSE, _DENSE), nn.Dropout(_DROPOUT), last)

    def parts(self, inputs: Tensor) -> Tensor:
        """``[L, 3]`` ms of pre-processing, execution and post-processing."""
        gpu = inputs[:, 2:4]
        before = self.before(torch.cat([inputs[:, :1], gpu], dim=1))
        after = self.after(torch.cat([inputs[:, 1:2], gpu], dim=1))
        return torch.exp(torch.cat([before, self.execution(inputs), after], dim=1))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.parts(inputs).sum(dim=1)


def _copy(latency_ms: np.ndarray) -> nn.Sequential:
    last = nn.Linear(_COPY_WIDTH, 1)
    start_at_mean(last, latency_ms * _COPY_SHARE)
    return nn.Sequential(nn.Linear(3, _COPY_WIDTH), nn.ReLU(), last)


def _inputs(table: LayerTable) -> np.ndarray:
    """``[L, F]``: logarithms of elements in and out and of the GPU's bandwidth and clock, then everything else."""
    hardware = np.log(table.hardware)
    names = list(HARDWARE_FIELDS)
    copies = [
        np.log(table.input_elements()),
        np.log(table.output_elements()),
        hardware[:, names.index("bandwidth_bytes_s")],
        hardware[:, names.index("clock_hz")],
    ]
    return np.column_stack([*copies, np.log1p(table.sizes), hardware, np.eye(len(Optimizer))[table.optimizer]])
