"""MobileNet v1 (Howard et al. 2017), v2 (Sandler et al. 2018) and v3 (Howard et al. 2019)."""

from __future__ import annotations

from functools import partial

from gnnperf.zoo.architecture import Architecture, Published, make_divisible, torchvision
from gnnperf.zoo.builder import GraphBuilder, Tensor


def mobilenet_v1(g: GraphBuilder, x: Tensor, classes: int) -> Tensor:
    """Depthwise and pointwise convolutions in turn."""
    x = g.conv_bn_relu(x, 32, 3, stride=2)
    for channels, stride in (
        (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1),
    ):  # fmt: skip
        x = g.conv_bn_relu(x, x.channels, 3, stride=stride, groups=x.channels)
        x = g.conv_bn_relu(x, channels)
    return g.classifier(x, classes)


def mobilenet_v2(g: GraphBuilder, x: Tensor, classes: int) -> Tensor:
    """Inverted residuals with linear bottlenecks."""
    x = g.relu6(g.conv_bn(x, 32, 3, stride=2))
    for expand, channels, repeats, first_stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for index in range(repeats):
            stride = 1 if index else first_stride
            out, hidden = x, expand * x.channels
            if expand > 1:
                out = g.relu6(g.conv_bn(out, hidden))
            out = g.relu6(g.conv_bn(out, hidden, 3, stride=stride, groups=hidden))
            out = g.conv_bn(out, channels)
            x = g.add(x, out) if stride == 1 and x.channels == channels else out
    return g.classifier(g.relu6(g.conv_bn(x, 1280)), classes)


# kernel, expanded channels, output channels, squeeze and excite, hard swish, stride
_LARGE = [
    (3, 16, 16, False, False, 1), (3, 64, 24, False, False, 2), (3, 72, 24, False, False, 1),
    (5, 72, 40, True, False, 2), (5, 120, 40, True, False, 1), (5, 120, 40, True, False, 1),
    (3, 240, 80, False, True, 2), (3, 200, 80, False, True, 1), (3, 184, 80, False, True, 1),
    (3, 184, 80, False, True, 1), (3, 480, 112, True, True, 1), (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2), (5, 960, 160, True, True, 1), (5, 960, 160, True, True, 1),
]  # fmt: skip
_SMALL = [
    (3, 16, 16, True, False, 2), (3, 72, 24, False, False, 2), (3, 88, 24, False, False, 1),
    (5, 96, 40, True, True, 2), (5, 240, 40, True, True, 1), (5, 240, 40, True, True, 1),
    (5, 120, 48, True, True, 1), (5, 144, 48, True, True, 1), (5, 288, 96, True, True, 2),
    (5, 576, 96, True, True, 1), (5, 576, 96, True, True, 1),
]  # fmt: skip


def mobilenet_v3(g: GraphBuilder, x: Tensor, classes: int, *, blocks: list[tuple], head: int) -> Tensor:
    """Inverted residuals with squeeze-and-excite and hard swish; ``head`` is the width before the classifier."""
    x = g.unary("HardSwish", g.conv_bn(x, 16, 3, stride=2))
    for kernel, hidden, channels, squeeze, hard_swish, stride in blocks:
        activate = partial(g.unary, "HardSwish") if hard_swish else g.relu
        out = x
        if hidden != x.channels:
            out = activate(g.conv_bn(out, hidden))
        out = activate(g.conv_bn(out, hidden, kernel, stride=stride, groups=hidden))
        if squeeze:
            gate = g.relu(g.conv(g.global_average_pool(out), make_divisible(hidden / 4), bias=True))
            out = g.mul(out, g.hard_sigmoid(g.conv(gate, hidden, bias=True)))
        out = g.conv_bn(out, channels)
        x = g.add(out, x) if stride == 1 and x.channels == channels else out
    x = g.unary("HardSwish", g.conv_bn(x, 6 * x.channels))
    x = g.linear(g.flatten(g.global_average_pool(x)), head)
    return g.linear(g.unary("HardSwish", x), classes)


ARCHITECTURES = [
    Architecture("mobilenet_v1", "mobilenet", mobilenet_v1,
                 published=Published(0.569, 4_231_976, "Howard et al. 2017, table 4; Keras, trainable parameters")),
    Architecture("mobilenet_v2", "mobilenet", mobilenet_v2, published=torchvision(0.301, 3_504_872)),
    Architecture("mobilenet_v3_large", "mobilenet", partial(mobilenet_v3, blocks=_LARGE, head=1280),
                 published=torchvision(0.217, 5_483_032)),
    Architecture("mobilenet_v3_small", "mobilenet", partial(mobilenet_v3, blocks=_SMALL, head=1024),
                 published=torchvision(0.057, 2_542_856)),
]  # fmt: skip
