"""EfficientNet B0-B7 (Tan and Le 2019)."""

from __future__ import annotations

import math
from functools import partial

from gnnperf.zoo.architecture import Architecture, make_divisible, torchvision
from gnnperf.zoo.builder import GraphBuilder, Tensor

# expansion, kernel, stride, output channels, repeats
_STAGES = (
    (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)  # fmt: skip


def efficientnet(g: GraphBuilder, x: Tensor, classes: int, *, width: float, depth: float) -> Tensor:
    """``width`` scales channels, ``depth`` repeats."""
    x = g.silu(g.conv_bn(x, make_divisible(32 * width), 3, stride=2))
    for expand, kernel, first_stride, base_channels, base_repeats in _STAGES:
        channels = make_divisible(base_channels * width)
        for index in range(math.ceil(base_repeats * depth)):
            stride, hidden, out = 1 if index else first_stride, make_divisible(x.channels * expand), x
            if hidden != x.channels:
                out = g.silu(g.conv_bn(out, hidden))
            out = g.silu(g.conv_bn(out, hidden, kernel, stride=stride, groups=hidden))
            gate = g.silu(g.conv(g.global_average_pool(out), max(1, x.channels // 4), bias=True))
            out = g.mul(out, g.unary("Sigmoid", g.conv(gate, hidden, bias=True)))
            out = g.conv_bn(out, channels)
            x = g.add(out, x) if stride == 1 and x.channels == channels else out
    return g.classifier(g.silu(g.conv_bn(x, 4 * x.channels)), classes)


ARCHITECTURES = [
    Architecture(f"efficientnet_b{number}", "efficientnet", partial(efficientnet, width=width, depth=depth), image,
                 published=torchvision(gmacs, parameters))
    for number, (width, depth, image, gmacs, parameters) in enumerate((
        (1.0, 1.0, 224, 0.386, 5_288_548),
        (1.0, 1.1, 240, 0.687, 7_794_184),
        (1.1, 1.2, 288, 1.088, 9_109_994),
        (1.2, 1.4, 300, 1.827, 12_233_232),
        (1.4, 1.8, 380, 4.394, 19_341_616),
        (1.6, 2.2, 456, 10.266, 30_389_784),
        (1.8, 2.6, 528, 19.068, 43_040_704),
        (2.0, 3.1, 600, 37.746, 66_347_960),
    ))
]  # fmt: skip
