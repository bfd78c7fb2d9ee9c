"""ShuffleNet v2 (Ma et al. 2018) at four widths."""

from __future__ import annotations

from functools import partial

from gnnperf.zoo.architecture import Architecture, torchvision
from gnnperf.zoo.builder import GraphBuilder, Tensor


def shufflenet_v2(g: GraphBuilder, x: Tensor, classes: int, *, widths: tuple[int, int, int, int]) -> Tensor:
    """``widths`` are the channels of the three stages and of the last convolution."""
    *stages, last = widths
    x = g.max_pool(g.conv_bn_relu(x, 24, 3, stride=2), 3, stride=2, padding=1)
    for channels, repeats in zip(stages, (4, 8, 4), strict=True):
        half = channels // 2
        left = g.conv_bn_relu(g.conv_bn(x, x.channels, 3, stride=2, groups=x.channels), half)
        x = _shuffled(g, left, _branch(g, x, half, stride=2))
        for _ in range(repeats - 1):
            left, right = g.split(x, 2)
            x = _shuffled(g, left, _branch(g, right, half, stride=1))
    return g.linear(g.spatial_mean(g.conv_bn_relu(x, last)), classes)


def _branch(g: GraphBuilder, x: Tensor, channels: int, *, stride: int) -> Tensor:
    x = g.conv_bn_relu(x, channels)
    x = g.conv_bn(x, channels, 3, stride=stride, groups=channels)
    return g.conv_bn_relu(x, channels)


def _shuffled(g: GraphBuilder, left: Tensor, right: Tensor) -> Tensor:
    return g.channel_shuffle(g.concat([left, right]), 2)


ARCHITECTURES = [
    Architecture(name, "shufflenet", partial(shufflenet_v2, widths=widths), published=torchvision(gmacs, parameters))
    for name, widths, gmacs, parameters in (
        ("shufflenet_v2_x0_5", (48, 96, 192, 1024), 0.040, 1_366_792),
        ("shufflenet_v2_x1_0", (116, 232, 464, 1024), 0.145, 2_278_604),
        ("shufflenet_v2_x1_5", (176, 352, 704, 1024), 0.296, 3_503_624),
        ("shufflenet_v2_x2_0", (244, 488, 976, 2048), 0.583, 7_393_996),
    )
]
