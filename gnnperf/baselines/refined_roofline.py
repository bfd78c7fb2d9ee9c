"""The roofline, refined by what is known of GPU libraries; constants are set by hand, nothing is learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from gnnperf.baselines.phases import FORWARD_PASSES
from gnnperf.devices.features import DEVICE_FIELDS, device_features
from gnnperf.devices.roofline import memory_bytes
from gnnperf.graph.opgraph import OpClass

if TYPE_CHECKING:
    import pandas as pd

    from gnnperf.conditions import Phase
    from gnnperf.datasets.graph_store import GraphStore
    from gnnperf.devices import Device
    from gnnperf.graph import GraphArrays

_PEAK_SHARE = 0.75
_BANDWIDTH_SHARE = 0.75
_WINOGRAD_GAIN = 1.8
_PAD_OUTPUTS, _PAD_INNER = 32, 8
_TILE_ROWS, _TILE_COLUMNS = 128, 64
_LAUNCH_MS = 0.005
_DEPTHWISE_PEAK_SHARE = 0.1


class RefinedRooflineBaseline:
    """The roofline with attainable shares, channel padding, waves and Winograd; untrained.

    After Williams et al. 2009 (roofline); tiles in waves as in Lee, Phanishayee, Mahajan: NeuSight, ASPLOS 2025;
    Winograd's convolutions as in Lavin and Gray: Fast Algorithms for Convolutional Neural Networks, CVPR 2016
    (F(2x2, 3x3): 2.25 times fewer multiplications, of which libraries gain about 1.8).

    Ours to choose: all constants are set by hand, and not blind to ImageNet networks on a GTX 1080 Ti. Products reach
    75 % of the peak and all operators 75 % of the bandwidth; output channels are padded to 32 and the inner dimension
    to 8; a product is cut into tiles of 128 x 64, which come in waves over the multiprocessors, the last as long as a
    full one; depthwise convolutions reach a tenth of the peak; every operator takes 5 us to launch, beside the device's
    work, so a network takes the longer of the two sums; a backward pass counts as two forward passes.
    :class:`gnnperf.nn.kernel.KernelModel` is what our network learns from the same ideas.
    """

    name = "refined-roofline"
    paper = "Williams et al.: Roofline, CACM 52(4), 2009; Lavin and Gray: Fast Algorithms for CNNs, CVPR 2016"

    def fit(self, rows: pd.DataFrame, graphs: GraphStore) -> Self:
        """Nothing is learned."""
        return self

    def predict(self, graph: GraphArrays, device: Device, batch: int, phase: Phase) -> float:
        """See :class:`gnnperf.baselines.baseline.Baseline`."""
        runs = graph.op_class != OpClass.VIEW
        device_ms = float(operator_ms(graph, device)[runs].sum())
        return max(device_ms, _LAUNCH_MS * int(runs.sum())) * FORWARD_PASSES[phase]


def operator_ms(graph: GraphArrays, device: Device) -> np.ndarray:
    """``[N]`` ms of each operator's kernel in a forward pass."""
    feature = dict(zip(DEVICE_FIELDS, device_features(device), strict=True))
    m, n, k, count = (graph.column(name) for name in ("gemm_m", "gemm_n", "gemm_k", "gemm_count"))
    depthwise = graph.op_class == OpClass.DEPTHWISE_CONV
    tiled = (m > 0) & ~depthwise

    padded_n, padded_k = _up(n, _PAD_OUTPUTS), _up(k, _PAD_INNER)
    tiles = np.ceil(m / _TILE_ROWS) * np.ceil(padded_n / _TILE_COLUMNS) * count
    waves = tiles / feature["sm_count"]
    idle = np.ceil(waves) / np.maximum(waves, 1e-9)  # how much longer for the multiprocessors that wait
    product_flops = 2 * count * m * np.where(tiled, padded_n * padded_k, n * k)
    other_flops = np.maximum(graph.column("flops") - 2 * graph.column("macs"), 0)

    winograd = (
        (graph.op_class == OpClass.CONV)
        & (graph.column("kernel_h") == 3)
        & (graph.column("kernel_w") == 3)
        & (graph.column("stride") == 1)
        & (graph.column("dilation") <= 1)
    )
    share = np.where(depthwise, _DEPTHWISE_PEAK_SHARE, _PEAK_SHARE) * np.where(winograd, _WINOGRAD_GAIN, 1.0)
    seconds = product_flops * np.where(tiled, idle, 1.0) / share + other_flops / _PEAK_SHARE
    compute_ms = 1e3 * seconds / feature["peak_flops"]
    memory_ms = 1e3 * memory_bytes(graph) / (_BANDWIDTH_SHARE * feature["bandwidth_bytes_s"])
    return np.maximum(compute_ms, memory_ms)


def _up(values: np.ndarray, multiple: int) -> np.ndarray:
    return np.ceil(values / multiple) * multiple
