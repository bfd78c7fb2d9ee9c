"""Justus et al. 2018: a fully connected network for each kind of layer, fed with layer and GPU; layers are summed."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from gnnperf.baselines.fitting import (
    Standardiser,
    dense_layers,
    fit_module,
    from_table,
    squared_log_error,
    start_at_mean,
)
from gnnperf.baselines.layer_sum import LayerModel, LayerSumBaseline
from gnnperf.baselines.layers import LayerTable
from gnnperf.conditions import Optimizer
from gnnperf.datasets.readers.justus2018 import NAME as JUSTUS2018


class JustusBaseline(LayerSumBaseline):
    """Per-layer multi-layer perceptrons on layer sizes, optimizer and GPU.

    Justus, Brennan, Bonner, McGough: Predicting the Computational Cost of Deep Learning Models. IEEE Big Data 2018. As
    there: one network a kind of layer, trained on layers at random sizes on all GPUs at once, with the GPU's figures as
    inputs; the optimizer, one-hot, tells a forward pass (none) from a training step; the network's latency is the sum
    over its layers.

    Ours to choose: hidden layers of 32, 64, 128 and 256 units with dropout 0.2 before the last; sizes and GPU figures
    enter as logarithms, and the loss is on the logarithm of the time (both help: times span four orders of magnitude);
    30,000 rows of a kind and 20 passes. The authors timed convolutions and dense layers, so poolings, activations and
    normalisation count as nothing.
    """

    name = "justus2018"
    paper = "Justus et al.: Predicting the Computational Cost of Deep Learning Models, IEEE Big Data 2018"
    epochs = 20

    def __init__(self, seed: int = 0) -> None:
        super().__init__(JUSTUS2018, seed)

    def _fit_layers(self, layers: LayerTable, latency_ms: np.ndarray) -> LayerModel:
        scale = Standardiser(_inputs(layers))

        def make() -> nn.Module:
            return _Perceptron(len(scale.mean), latency_ms)

        network = fit_module(
            make, from_table(scale(_inputs(layers))), latency_ms, squared_log_error, epochs=self.epochs, seed=self.seed
        )

        def model(table: LayerTable) -> np.ndarray:
            with torch.no_grad():
                return network(scale(_inputs(table))).numpy().astype(float)

        return model


class _Perceptron(nn.Module):
    def __init__(self, inputs: int, latency_ms: np.ndarray) -> None:
        super().__init__()
        self.hidden = nn.Sequential(*dense_layers(inputs, 32, 64, 128, 256), nn.Dropout(0.2))
        self.last = nn.Linear(256, 1)
        start_at_mean(self.last, latency_ms)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.exp(self.last(self.hidden(inputs))[:, 0])


def _inputs(table: LayerTable) -> np.ndarray:
    """``[L, F]``: logarithms of the sizes (0 and 1 stay so, up to a factor), GPU figures, optimizer one-hot."""
    return np.column_stack([np.log1p(table.sizes), np.log(table.hardware), np.eye(len(Optimizer))[table.optimizer]])
