"""CDMPP: a layer as the leaves of its loop nest, in order; a Transformer over them; layers are summed."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from gnnperf.baselines.fitting import Standardiser, dense_layers, fit_module
from gnnperf.baselines.layer_sum import LayerModel, LayerSumBaseline
from gnnperf.baselines.layers import LayerKind, LayerTable
from gnnperf.conditions import Optimizer
from gnnperf.datasets.readers.justus2018 import NAME as JUSTUS2018

_WIDTH, _HEADS, _DEPTH = 64, 4, 2
_LEAVES = 4  # fill with zeros, multiply and add, add the bias, activate
_MAPE_WEIGHT = 0.1


class CDMPPBaseline(LayerSumBaseline):
    """Transformer over a layer's loop-nest leaves with positional encoding, for devices seen and unseen.

    Hu, Su, Zhao, Peng, Zhu, Lin, Wu: CDMPP: A Device-Model Agnostic Framework for Latency Prediction of Tensor
    Programs. EuroSys 2024. As there: a tensor program is the sequence of its abstract syntax tree's leaves, each a
    vector of what it computes (loop extents, operations, bytes); the leaf's place in pre-order enters by a sinusoidal
    positional encoding, added to the vector; a Transformer encoder turns leaves into one embedding, which a multi-layer
    perceptron joins with that of the device; latencies go through Box-Cox; the loss is the squared error of these plus
    a share of the MAPE; a network's latency comes from replaying its programs, on a GPU one after the other.

    Ours to choose: no compiler is asked for loop nests, so a layer has the leaves of its textbook form: fill, multiply
    and add, bias, activation, the last two where it has them. Embeddings of 64, two encoder layers, four heads; the
    optimizer, one-hot, joins the device; layers of Justus et al. 2018, 30,000 of a kind and 12 passes. Without: the
    alignment of source and target domains (CMD) and the choice of programs to measure, which need measurements on the
    target. Poolings, activations by themselves and normalisation count as nothing.
    """

    name = "cdmpp"
    paper = (
        "Hu et al.: CDMPP: A Device-Model Agnostic Framework for Latency Prediction of Tensor Programs, EuroSys 2024"
    )
    epochs = 12

    def __init__(self, seed: int = 0) -> None:
        super().__init__(JUSTUS2018, seed)

    def _fit_layers(self, layers: LayerTable, latency_ms: np.ndarray) -> LayerModel:
        box_cox = _BoxCox(latency_ms)
        leaf_scale = Standardiser(_leaves(layers)[_present(layers)])
        device_scale = Standardiser(_device(layers))

        def arguments(table: LayerTable) -> tuple[Tensor, ...]:
            leaves = _leaves(table)
            scaled = leaf_scale(leaves.reshape(-1, leaves.shape[2])).reshape(leaves.shape)
            return scaled, torch.from_numpy(_present(table)), device_scale(_device(table))

        def make() -> nn.Module:
            return _LeafTransformer(len(leaf_scale.mean), len(device_scale.mean), box_cox)

        def loss(predicted_ms: Tensor, measured_ms: Tensor) -> Tensor:
            squared = (box_cox.forward(predicted_ms) - box_cox.forward(measured_ms)).square().mean()
            return squared + _MAPE_WEIGHT * (predicted_ms / measured_ms - 1).abs().mean()

        own = arguments(layers)
        network = fit_module(
            make, lambda rows: tuple(part[rows] for part in own), latency_ms, loss, epochs=self.epochs, seed=self.seed
        )

        def model(table: LayerTable) -> np.ndarray:
            with torch.no_grad():
                return network(*arguments(table)).numpy().astype(float)

        return model


class _BoxCox:
    """Latencies to standardised Box-Cox values and back, by what was seen in training."""

    def __init__(self, latency_ms: np.ndarray) -> None:
        from scipy.stats import boxcox

        values, self._power = boxcox(latency_ms)
        self._mean, self._deviation = float(values.mean()), float(values.std())

    def forward(self, latency_ms: Tensor) -> Tensor:
        return ((latency_ms**self._power - 1) / self._power - self._mean) / self._deviation

    def inverse(self, values: Tensor) -> Tensor:
        base = self._power * (values * self._deviation + self._mean) + 1
        return base.clamp_min(1e-3) ** (1 / self._power)


class _LeafTransformer(nn.Module):
    """Leaves ``[L, _LEAVES, F]``, which of them there are ``[L, _LEAVES]``, and device ``[L, D]`` to ``[L]`` ms."""

    def __init__(self, leaf_inputs: int, device_inputs: int, box_cox: _BoxCox) -> None:
        super().__init__()
        self.leaf = nn.Linear(leaf_inputs, _WIDTH)
        self.register_buffer("position", _positional_encoding(_LEAVES, _WIDTH))
        layer = nn.TransformerEncoderLayer(_WIDTH, _HEADS, 2 * _WIDTH, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, _DEPTH, enable_nested_tensor=False)
        self.device = nn.Sequential(*dense_layers(device_inputs, _WIDTH))
        self.head = nn.Sequential(*dense_layers(2 * _WIDTH, _WIDTH, _WIDTH), nn.Linear(_WIDTH, 1))
        self._box_cox = box_cox

    def forward(self, leaves: Tensor, present: Tensor, device: Tensor) -> Tensor:
        state = self.encoder(self.leaf(leaves) + self.position, src_key_padding_mask=~present)
        kept = present.float()[:, :, None]
        embedding = (state * kept).sum(dim=1) / kept.sum(dim=1)
        return self._box_cox.inverse(self.head(torch.cat([embedding, self.device(device)], dim=1))[:, 0])


def _positional_encoding(places: int, width: int) -> Tensor:
    """``[places, width]`` sines and cosines (Vaswani et al. 2017, section 3.5)."""
    frequency = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000) / width))
    angle = torch.arange(places)[:, None] * frequency
    return torch.stack([torch.sin(angle), torch.cos(angle)], dim=2).reshape(places, width)


def _present(table: LayerTable) -> np.ndarray:
    """``[L, _LEAVES]`` which leaves a layer has."""
    always = np.ones(len(table), bool)
    bias = table.column("bias") > 0 if table.kind == LayerKind.CONV else ~always
    activation = table.column("activation") > 0 if table.kind != LayerKind.POOL else ~always
    return np.column_stack([always, always, bias, activation])


def _leaves(table: LayerTable) -> np.ndarray:
    """``[L, _LEAVES, F]`` logarithms of loop extents, operations, bytes read and written of each leaf."""
    outer = [table.column("batch"), table.output_side(), table.column(_outputs(table.kind))]
    inner = [table.column("channels"), np.ones(len(table)) if table.kind == LayerKind.DENSE else table.column("kernel")]
    output, operations = table.output_elements(), table.operations()
    none = np.zeros(len(table))
    weights = operations / (table.column("batch") * table.output_side() ** 2)
    read = table.input_elements() + (weights if table.kind != LayerKind.POOL else none)
    leaves = [
        [*outer, none, none, none, none, output],
        [*outer, *inner, operations, read, output],
        [*outer, none, none, output, output + table.column(_outputs(table.kind)), output],
        [*outer, none, none, output, output, output],
    ]
    return np.log1p(np.stack([np.column_stack(leaf) for leaf in leaves], axis=1))


def _outputs(kind: LayerKind) -> str:
    return "channels" if kind == LayerKind.POOL else "filters"


def _device(table: LayerTable) -> np.ndarray:
    """``[L, D]`` GPU figures and the optimizer."""
    return np.column_stack([np.log(table.hardware), np.eye(len(Optimizer))[table.optimizer]])
