"""Analytic device time of an operator: a roofline refined by how GPUs tile matrix products.

The constants (attainable shares of peak and bandwidth, Winograd's gain, the shortest kernel) are parameters of the
network, started at textbook values, so the whole is fitted end to end and still extrapolates like physics.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from gnnperf.graph.arrays import FIELD
from gnnperf.graph.opgraph import OpClass

NUM_CLASSES = len(OpClass)
PRODUCT_CLASSES = (
    OpClass.CONV,
    OpClass.GROUPED_CONV,
    OpClass.DEPTHWISE_CONV,
    OpClass.CONV_TRANSPOSE,
    OpClass.GEMM,
    OpClass.MATMUL,
    OpClass.ATTENTION,
    OpClass.RECURRENT,
)

# Starting shares of peak FLOP/s and of bandwidth, by class; everything not named starts at the default.
# Grouped convolutions are dense ones to each group: what narrow groups lose, unfilled tiles already say.
_COMPUTE_SHARE = {OpClass.DEPTHWISE_CONV: 0.1, OpClass.RECURRENT: 0.3}
_MEMORY_SHARE = {OpClass.DEPTHWISE_CONV: 0.5, OpClass.DATA_MOVEMENT: 0.35, OpClass.POOLING: 0.6}
_DEFAULT_COMPUTE_SHARE = 0.75
_DEFAULT_MEMORY_SHARE = 0.75
_SHORTEST_KERNEL_MS = 0.002
# Prior standard deviations (of the logarithm) around these values: products run on well-known libraries.
_PRODUCT_DEVIATION, _OTHER_DEVIATION, _SHORTEST_DEVIATION = 0.15, 0.3, 0.7
_SMOOTHNESS = 4.0  # exponent of the p-norm that stands for max(compute, memory)


def product_mask() -> Tensor:
    """``[NUM_CLASSES]`` 1 for classes that are matrix products, 0 for the others."""
    mask = torch.zeros(NUM_CLASSES)
    mask[list(PRODUCT_CLASSES)] = 1.0
    return mask


def _class_table(default: float, special: dict[OpClass, float]) -> Tensor:
    table = torch.full((NUM_CLASSES,), math.log(default))
    for op_class, value in special.items():
        table[op_class] = math.log(value)
    return table


def smooth_max(a: Tensor, b: Tensor, exponent: float | Tensor = _SMOOTHNESS) -> Tensor:
    """p-norm of two non-negative tensors: the larger one where they differ, up to ``2 ** (1 / p)`` of it where not."""
    larger = torch.maximum(a, b).clamp_min(1e-12)
    smaller = torch.minimum(a, b)
    return larger * (1 + (smaller / larger) ** exponent) ** (1 / exponent)


class KernelModel(nn.Module):
    """Time of each operator's kernel on a device.

    A product of ``m x k`` by ``k x n`` is cut into tiles that come in waves over the multiprocessors; libraries choose
    the tile for which padding, the last wave and the tile's own efficiency together cost least. Short inner dimensions
    and 3x3 stride-1 convolutions (Winograd; Lavin and Gray 2016) change the attainable rate. The kernel takes the
    smooth maximum of compute and memory time (roofline; Williams et al. 2009) plus a shortest time.

    Args:
        tiled: whether tiles, waves, inner dimensions and Winograd are modelled; without, products run at the attainable
            share of the peak.
    """

    # Rows and columns of the tiles of common SGEMM kernels, and the share of the best rate that each can reach.
    TILES = ((128, 128, 1.0), (128, 64, 0.95), (128, 32, 0.8), (64, 64, 0.8), (32, 32, 0.5))
    PAD_K = 8.0

    def __init__(self, tiled: bool = True) -> None:
        super().__init__()
        self.tiled = tiled
        self.log_compute_share = nn.Parameter(_class_table(_DEFAULT_COMPUTE_SHARE, _COMPUTE_SHARE))
        self.log_memory_share = nn.Parameter(_class_table(_DEFAULT_MEMORY_SHARE, _MEMORY_SHARE))
        self.log_shortest_ms = nn.Parameter(_class_table(_SHORTEST_KERNEL_MS, {OpClass.VIEW: 1e-5}))
        self.log_winograd_gain = nn.Parameter(torch.tensor(math.log(1.8)))
        self.log_half_k = nn.Parameter(torch.tensor(math.log(8.0)))
        self.tile_logit = nn.Parameter(torch.logit(torch.tensor([share for _, _, share in self.TILES]), eps=0.03))

        self.register_buffer("is_product", product_mask(), persistent=False)
        # Not buffers: what training started from is no part of the network.
        self._initial = {name: parameter.detach().clone() for name, parameter in self.named_parameters()}

    def penalty(self) -> Tensor:
        """Negative log prior of the constants around their starting values, up to a factor and a constant."""
        by_class = torch.where(self.is_product > 0, _PRODUCT_DEVIATION, _OTHER_DEVIATION)
        deviation = {
            "log_compute_share": by_class,
            "log_memory_share": by_class,
            "log_shortest_ms": _SHORTEST_DEVIATION,
        }
        return sum(
            ((parameter - self._initial[name]) / deviation.get(name, _PRODUCT_DEVIATION)).square().sum()
            for name, parameter in self.named_parameters()
        )

    def forward(
        self,
        op_class: Tensor,
        node: Tensor,
        gemm: tuple[Tensor, Tensor, Tensor, Tensor],
        moved_bytes: Tensor,
        other_flops: Tensor,
        peak_flops: Tensor,
        bandwidth_bytes_s: Tensor,
        sm_count: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Time of every operator.

        Args:
            op_class: ``[N]`` operator classes.
            node: ``[N, F]`` raw quantities (kernel and stride are read).
            gemm: m, n, k, count, each ``[N]``; a backward product has its own.
            moved_bytes: ``[N]`` bytes read and written.
            other_flops: ``[N]`` floating-point operations outside the product.
            peak_flops: ``[N]`` peak rate of the operator's device, FLOP/s.
            bandwidth_bytes_s: ``[N]``.
            sm_count: ``[N]``.

        Returns:
            ``[N]`` milliseconds and ``[N, 4]`` traits of the kernel (log compute / memory, efficiency of the best tile,
            padding of k, log waves of the smallest tile), which describe the regime that the kernel runs in.
        """
        m, n, k, count = gemm
        shares = torch.sigmoid(self.tile_logit)
        efficiency = torch.full_like(m, 1e-3)
        waves = torch.zeros_like(m)
        for (tile_m, tile_n, _), share in zip(self.TILES, shares.unbind(0), strict=True):
            tiles_m, tiles_n = torch.ceil(m / tile_m), torch.ceil(n / tile_n)
            tile_waves = tiles_m * tiles_n * count / sm_count
            in_use = tile_waves / torch.ceil(tile_waves).clamp_min(1.0)
            filled = m * n / (tiles_m * tiles_n * (tile_m * tile_n)).clamp_min(1.0)
            efficiency = torch.maximum(efficiency, share * in_use * filled)
            waves = torch.maximum(waves, tile_waves)
        padded_k = torch.ceil(k / self.PAD_K) * self.PAD_K
        half_k = torch.exp(self.log_half_k)
        inner = k / (k + half_k)
        winograd = (
            (op_class == OpClass.CONV)
            & (node[:, FIELD["kernel_h"]] == 3)
            & (node[:, FIELD["kernel_w"]] == 3)
            & (node[:, FIELD["stride"]] == 1)
            & (node[:, FIELD["dilation"]] <= 1)
        ).float() * self.tiled
        rate = peak_flops * torch.exp(self.log_compute_share[op_class] + winograd * self.log_winograd_gain)
        # Depthwise convolutions run on kernels of their own: no tiles, no padding.
        tiled = (op_class != OpClass.DEPTHWISE_CONV).float() * self.tiled
        efficiency = torch.where(tiled > 0, efficiency * inner.clamp_min(1e-2), torch.ones_like(efficiency))
        product_flops = 2 * count * m * n * torch.where(tiled > 0, padded_k, k)
        compute_ms = 1e3 * (product_flops / efficiency + other_flops) / rate
        memory_ms = 1e3 * moved_bytes / (bandwidth_bytes_s * torch.exp(self.log_memory_share[op_class]))
        time_ms = smooth_max(compute_ms, memory_ms) + torch.exp(self.log_shortest_ms[op_class])

        has_product = self.is_product[op_class] * (m > 0)
        traits = torch.stack(
            [
                torch.log((compute_ms + 1e-6) / (memory_ms + 1e-6)),
                efficiency,
                torch.log(padded_k / k.clamp_min(1.0) + 1e-6).clamp_min(0.0),
                torch.log1p(waves),
            ],
            dim=1,
        )
        return time_ms, traits * has_product[:, None]
