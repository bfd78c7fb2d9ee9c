"""ResPerfNet: a residual 1-D convolutional network for each kind of layer; layers are summed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from gnnperf.baselines.fitting import Standardiser, dense_layers, fit_module, from_table, maple, start_at_mean
from gnnperf.baselines.layer_sum import LayerModel, LayerSumBaseline
from gnnperf.baselines.layers import LayerKind, LayerTable
from gnnperf.conditions import Optimizer, Phase
from gnnperf.datasets.readers.justus2018 import NAME as JUSTUS2018
from gnnperf.datasets.readers.resperfnet import NAME as RESPERFNET
from gnnperf.datasets.readers.resperfnet import is_test_layer
from gnnperf.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from gnnperf.devices import Device
    from gnnperf.graph import GraphArrays

_SOURCES = {RESPERFNET: "resperfnet", JUSTUS2018: "resperfnet-justus2018"}
_CHANNELS = (128, 128, 64, 64, 32, 32)
_DENSE, _DROPOUT = 128, 0.2


class ResPerfNetBaseline(LayerSumBaseline):
    """Per-layer residual networks with MAPLE loss, one device each.

    Wang, Liao, Kao, Liang, Hung: ResPerfNet: Deep Residual Learning for Regressional Performance Modeling of Deep
    Neural Networks. arXiv 2012.01671, 2020. As there: a first convolution of 128 channels over the feature vector,
    residual blocks of 1x1 convolutions with 128, 64 and 32 channels, two each, three dense layers of 128, dropout 0.2;
    the element counts of input image and kernel go through Box-Cox, all features are standardised; the loss is MAPLE; a
    network's latency is the sum over its convolutions, dense layers and poolings, and what else it has counts as
    nothing.

    Two sources: the authors' own layers of the GTX 1080 Ti (their training files alone; each time contains the copy of
    the layer's output to the host), and those of Justus et al. 2018 (no poolings, but training steps, told apart by the
    optimizer, one-hot, which is an input more). The former come without a licence and serve the benchmark alone.

    Ours to choose: the first convolution's kernel spans the whole feature vector (one of three elements sees neighbours
    alone, and what is neighbour to what is arbitrary: 40 % off on held-out convolutions after as much training); the
    network gives the logarithm of the time; Adam, 30 passes over 30,000 rows of a kind.

    Args:
        source: "resperfnet" or "justus2018".
        device: slug of the device that is fitted; the method has no device features.
        seed: of weights, order and dropout.
    """

    paper = (
        "Wang, Liao, Kao, Liang, Hung: ResPerfNet: Deep Residual Learning for Regressional Performance Modeling of "
        "Deep Neural Networks, arXiv 2012.01671, 2020"
    )
    epochs = 30

    def __init__(self, source: str = RESPERFNET, device: str = "1080ti", seed: int = 0) -> None:
        super().__init__(source, seed)
        self.name = _SOURCES[source]
        self.device = device

    def predict(self, graph: GraphArrays, device: Device, batch: int, phase: Phase) -> float:
        """See :class:`gnnperf.baselines.baseline.Baseline`."""
        if device.slug != self.device:
            raise DataError(f"{self.name} was fitted on {self.device} and knows no other device, such as {device.slug}")
        return super().predict(graph, device, batch, phase)

    def _layer_rows(self, rows: pd.DataFrame) -> pd.DataFrame:
        layers = super()._layer_rows(rows)
        layers = layers[layers["device"] == self.device]
        return layers if self.source != RESPERFNET else layers[~is_test_layer(layers)]

    def _fit_layers(self, layers: LayerTable, latency_ms: np.ndarray) -> LayerModel:
        features = _Features(layers)

        def make() -> nn.Module:
            return _ResidualNetwork(features.width, latency_ms)

        network = fit_module(make, from_table(features(layers)), latency_ms, maple, epochs=self.epochs, seed=self.seed)

        def model(table: LayerTable) -> np.ndarray:
            with torch.no_grad():
                return network(features(table)).numpy().astype(float)

        return model


class _Features:
    """Layers to standardised inputs ``[L, width]``, by what was seen in training."""

    def __init__(self, layers: LayerTable) -> None:
        from sklearn.preprocessing import PowerTransformer

        counts = _element_counts(layers)
        self._box_cox = PowerTransformer("box-cox", standardize=False).fit(counts) if counts.shape[1] else None
        inputs = self._inputs(layers)
        self._scale = Standardiser(inputs)
        self.width = inputs.shape[1]

    def __call__(self, layers: LayerTable) -> Tensor:
        return self._scale(self._inputs(layers))

    def _inputs(self, layers: LayerTable) -> np.ndarray:
        counts = _element_counts(layers)
        transformed = self._box_cox.transform(counts) if self._box_cox else counts
        return np.column_stack([layers.sizes, transformed, np.eye(len(Optimizer))[layers.optimizer]])


def _element_counts(layers: LayerTable) -> np.ndarray:
    """``[L, 2]`` elements of an input image and of a kernel; ``[L, 0]`` of dense layers, which have neither."""
    if layers.kind == LayerKind.DENSE:
        return np.zeros((len(layers), 0))
    return np.column_stack([layers.column("image") ** 2, layers.column("kernel") ** 2])


class _ResidualBlock(nn.Module):
    """Two 1x1 convolutions beside a shortcut, which is a 1x1 convolution where the channels change."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(inputs, outputs, 1)
        self.second = nn.Conv1d(outputs, outputs, 1)
        self.shortcut = nn.Identity() if inputs == outputs else nn.Conv1d(inputs, outputs, 1)

    def forward(self, state: Tensor) -> Tensor:
        return torch.relu(self.shortcut(state) + self.second(torch.relu(self.first(state))))


class _ResidualNetwork(nn.Module):
    """``[L, F]`` features to ``[L]`` ms."""

    def __init__(self, features: int, latency_ms: np.ndarray) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, _CHANNELS[0], features)
        inputs = (_CHANNELS[0], *_CHANNELS[:-1])
        self.blocks = nn.Sequential(*[_ResidualBlock(a, b) for a, b in zip(inputs, _CHANNELS, strict=True)])
        self.dense = nn.Sequential(*dense_layers(_CHANNELS[-1], _DENSE, _DENSE, _DENSE), nn.Dropout(_DROPOUT))
        self.last = nn.Linear(_DENSE, 1)
        start_at_mean(self.last, latency_ms)

    def forward(self, inputs: Tensor) -> Tensor:
        state = self.blocks(torch.relu(self.first(inputs[:, None])))
        return torch.exp(self.last(self.dense(state.flatten(1)))[:, 0])
