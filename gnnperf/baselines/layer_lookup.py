"""A table of measured layers: each layer takes what the most similar measured one took."""

from __future__ import annotations

import numpy as np

from gnnperf.baselines.layer_sum import LayerModel, LayerSumBaseline
from gnnperf.baselines.layers import LayerTable
from gnnperf.conditions import Optimizer
from gnnperf.datasets.readers.justus2018 import NAME as JUSTUS2018

_ANOTHER = 1e3  # distance between devices, and between optimizers: no entry of one serves another


class LayerLookupBaseline(LayerSumBaseline):
    """A network takes the sum of its layers' entries in a table of layers run by themselves.

    The latency tables of hardware-aware architecture search: Cai, Zhu, Han: ProxylessNAS. ICLR 2019; Wu et al.: FBNet.
    CVPR 2019. There every layer of a search space is in the table.

    Ours to choose: the table is that of Justus et al. 2018, layers at random sizes, so a layer takes the time of the
    nearest entry (Euclidean, on the logarithms of all sizes) of its device and optimizer, scaled by the ratio of their
    operations. A device without entries takes those of the most similar device, scaled by the ratio of peak rates.
    Poolings, activations and normalisation are not in the table and count as nothing.
    """

    name = "layer-lookup"
    paper = "Cai, Zhu, Han: ProxylessNAS: Direct Neural Architecture Search on Target Task and Hardware, ICLR 2019"
    most_rows = 200_000

    def __init__(self, seed: int = 0) -> None:
        super().__init__(JUSTUS2018, seed)

    def _fit_layers(self, layers: LayerTable, latency_ms: np.ndarray) -> LayerModel:
        from sklearn.neighbors import KDTree

        tree = KDTree(_keys(layers))
        cost_ms = latency_ms / _bound(layers)

        def model(table: LayerTable) -> np.ndarray:
            entry = tree.query(_keys(table), return_distance=False)[:, 0]
            return cost_ms[entry] * _bound(table)

        return model


def _keys(table: LayerTable) -> np.ndarray:
    """``[L, F]`` coordinates in which neighbours are similar layers of one device and optimizer."""
    optimizer = np.eye(len(Optimizer))[table.optimizer]
    return np.column_stack([np.log1p(table.sizes), _ANOTHER * np.log(table.hardware[:, :2]), _ANOTHER * optimizer])


def _bound(table: LayerTable) -> np.ndarray:
    """``[L]`` operations over the device's peak rate: what entries are scaled by."""
    return table.operations() / table.hardware[:, 0]
