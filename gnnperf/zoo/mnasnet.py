"""MnasNet-B1 (Tan et al. 2018) at four widths."""

from __future__ import annotations

from functools import partial

from gnnperf.zoo.architecture import Architecture, make_divisible, torchvision
from gnnperf.zoo.builder import GraphBuilder, Tensor


def mnasnet(g: GraphBuilder, x: Tensor, classes: int, *, width: float) -> Tensor:
    """``width`` scales every channel count but that of the last convolution."""
    stem, first, *stages = (make_divisible(channels * width) for channels in (32, 16, 24, 40, 80, 96, 192, 320))
    x = g.conv_bn_relu(x, stem, 3, stride=2)
    x = g.conv_bn_relu(x, stem, 3, groups=stem)
    x = g.conv_bn(x, first)
    plan = ((3, 2, 3, 3), (5, 2, 3, 3), (5, 2, 6, 3), (3, 1, 6, 2), (5, 2, 6, 4), (3, 1, 6, 1))
    for channels, (kernel, first_stride, expand, repeats) in zip(stages, plan, strict=True):
        for index in range(repeats):
            stride, hidden = 1 if index else first_stride, x.channels * expand
            out = g.conv_bn_relu(x, hidden)
            out = g.conv_bn_relu(out, hidden, kernel, stride=stride, groups=hidden)
            out = g.conv_bn(out, channels)
            x = g.add(out, x) if stride == 1 and x.channels == channels else out
    return g.linear(g.spatial_mean(g.conv_bn_relu(x, 1280)), classes)


ARCHITECTURES = [
    Architecture(name, "mnasnet", partial(mnasnet, width=width), published=torchvision(gmacs, parameters))
    for name, width, gmacs, parameters in (
        ("mnasnet0_5", 0.5, 0.104, 2_218_512),
        ("mnasnet0_75", 0.75, 0.215, 3_170_208),
        ("mnasnet1_0", 1.0, 0.314, 4_383_312),
        ("mnasnet1_3", 1.3, 0.526, 6_282_256),
    )
]
