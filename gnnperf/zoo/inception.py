"""The Inception line: GoogLeNet (v1), BN-Inception, v3 and v4 (Szegedy et al. 2014-2016, Ioffe and Szegedy 2015)."""

from __future__ import annotations

from functools import partial

from gnnperf.zoo.architecture import Architecture, Published, torchvision
from gnnperf.zoo.builder import GraphBuilder, Tensor


def googlenet(g: GraphBuilder, x: Tensor, classes: int) -> Tensor:
    """As torchvision builds it: batch normalisation, and 3x3 convolutions in the branch that the paper makes 5x5."""
    x = g.max_pool(g.conv_bn_relu(x, 64, 7, stride=2), 3, stride=2, ceil=True)
    x = g.max_pool(g.conv_bn_relu(g.conv_bn_relu(x, 64), 192, 3), 3, stride=2, ceil=True)
    for module in (
        (64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), None,
        (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128), None,
        (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128),
    ):  # fmt: skip
        # The second of the two pools between the stages has a 2x2 window in torchvision.
        if module is None:
            x = g.max_pool(x, 3 if x.channels == 480 else 2, stride=2, ceil=True)
            continue
        one, reduce3, three, reduce5, five, pool = module
        x = g.concat([
            g.conv_bn_relu(x, one),
            g.conv_bn_relu(g.conv_bn_relu(x, reduce3), three, 3),
            g.conv_bn_relu(g.conv_bn_relu(x, reduce5), five, 3),
            g.conv_bn_relu(g.max_pool(x, 3, stride=1, padding=1, ceil=True), pool),
        ])  # fmt: skip
    return g.classifier(x, classes)


def inception_bn(g: GraphBuilder, x: Tensor, classes: int) -> Tensor:
    """BN-Inception as MXNet and Caffe have it: convolutions keep their bias in front of batch normalisation."""
    cbr = partial(g.conv_bn_relu, bias=True)
    x = g.max_pool(cbr(x, 64, 7, stride=2), 3, stride=2, ceil=True)
    x = g.max_pool(cbr(cbr(x, 64), 192, 3), 3, stride=2, ceil=True)
    for module in (
        (64, 64, 64, 64, 96, 32, "average"), (64, 64, 96, 64, 96, 64, "average"), (128, 160, 64, 96),
        (224, 64, 96, 96, 128, 128, "average"), (192, 96, 128, 96, 128, 128, "average"),
        (160, 128, 160, 128, 160, 128, "average"), (96, 128, 192, 160, 192, 128, "average"), (128, 192, 192, 256),
        (352, 192, 320, 160, 224, 128, "average"), (352, 192, 320, 192, 224, 128, "max"),
    ):  # fmt: skip
        if len(module) == 4:
            reduce3, three, reduce_double, double = module
            branches = [
                cbr(cbr(x, reduce3), three, 3, stride=2),
                cbr(cbr(cbr(x, reduce_double), double, 3), double, 3, stride=2),
                g.max_pool(x, 3, stride=2, ceil=True),
            ]
        else:
            one, reduce3, three, reduce_double, double, project, kind = module
            pool = g.average_pool if kind == "average" else g.max_pool
            branches = [
                cbr(x, one),
                cbr(cbr(x, reduce3), three, 3),
                cbr(cbr(cbr(x, reduce_double), double, 3), double, 3),
                cbr(pool(x, 3, stride=1, padding=1), project),
            ]
        x = g.concat(branches)
    return g.classifier(x, classes)


def inception_v3(g: GraphBuilder, x: Tensor, classes: int) -> Tensor:
    """As torchvision builds it, without the auxiliary classifier."""
    cbr = g.conv_bn_relu
    x = cbr(cbr(cbr(x, 32, 3, stride=2, padding=0), 32, 3, padding=0), 64, 3)
    x = cbr(cbr(g.max_pool(x, 3, stride=2), 80), 192, 3, padding=0)
    x = g.max_pool(x, 3, stride=2)
    for project in (32, 64, 64):
        x = g.concat([
            cbr(x, 64),
            cbr(cbr(x, 48), 64, 5),
            cbr(cbr(cbr(x, 64), 96, 3), 96, 3),
            cbr(_average(g, x), project),
        ])  # fmt: skip
    x = g.concat([
        cbr(x, 384, 3, stride=2, padding=0),
        cbr(cbr(cbr(x, 64), 96, 3), 96, 3, stride=2, padding=0),
        g.max_pool(x, 3, stride=2),
    ])  # fmt: skip
    for width in (128, 160, 160, 192):
        long = cbr(cbr(cbr(cbr(x, width), width, (7, 1)), width, (1, 7)), width, (7, 1))
        x = g.concat([
            cbr(x, 192),
            cbr(cbr(cbr(x, width), width, (1, 7)), 192, (7, 1)),
            cbr(long, 192, (1, 7)),
            cbr(_average(g, x), 192),
        ])  # fmt: skip
    x = g.concat([
        cbr(cbr(x, 192), 320, 3, stride=2, padding=0),
        cbr(cbr(cbr(cbr(x, 192), 192, (1, 7)), 192, (7, 1)), 192, 3, stride=2, padding=0),
        g.max_pool(x, 3, stride=2),
    ])  # fmt: skip
    for _ in range(2):
        three, double = cbr(x, 384), cbr(cbr(x, 448), 384, 3)
        x = g.concat([
            cbr(x, 320),
            g.concat([cbr(three, 384, (1, 3)), cbr(three, 384, (3, 1))]),
            g.concat([cbr(double, 384, (1, 3)), cbr(double, 384, (3, 1))]),
            cbr(_average(g, x), 192),
        ])  # fmt: skip
    return g.classifier(x, classes)


def inception_v4(g: GraphBuilder, x: Tensor, classes: int) -> Tensor:
    """The pure Inception network of Szegedy et al. 2016."""
    cbr = g.conv_bn_relu
    x = cbr(cbr(cbr(x, 32, 3, stride=2, padding=0), 32, 3, padding=0), 64, 3)
    x = g.concat([g.max_pool(x, 3, stride=2), cbr(x, 96, 3, stride=2, padding=0)])
    x = g.concat([
        cbr(cbr(x, 64), 96, 3, padding=0),
        cbr(cbr(cbr(cbr(x, 64), 64, (1, 7)), 64, (7, 1)), 96, 3, padding=0),
    ])  # fmt: skip
    x = g.concat([cbr(x, 192, 3, stride=2, padding=0), g.max_pool(x, 3, stride=2)])
    for _ in range(4):
        x = g.concat([
            cbr(x, 96),
            cbr(cbr(x, 64), 96, 3),
            cbr(cbr(cbr(x, 64), 96, 3), 96, 3),
            cbr(_average(g, x), 96),
        ])  # fmt: skip
    x = g.concat([
        cbr(x, 384, 3, stride=2, padding=0),
        cbr(cbr(cbr(x, 192), 224, 3), 256, 3, stride=2, padding=0),
        g.max_pool(x, 3, stride=2),
    ])  # fmt: skip
    for _ in range(7):
        long = cbr(cbr(cbr(x, 192), 192, (7, 1)), 224, (1, 7))
        x = g.concat([
            cbr(x, 384),
            cbr(cbr(cbr(x, 192), 224, (1, 7)), 256, (7, 1)),
            cbr(cbr(long, 224, (7, 1)), 256, (1, 7)),
            cbr(_average(g, x), 128),
        ])  # fmt: skip
    x = g.concat([
        cbr(cbr(x, 192), 192, 3, stride=2, padding=0),
        cbr(cbr(cbr(cbr(x, 256), 256, (1, 7)), 320, (7, 1)), 320, 3, stride=2, padding=0),
        g.max_pool(x, 3, stride=2),
    ])  # fmt: skip
    for _ in range(3):
        three, double = cbr(x, 384), cbr(cbr(cbr(x, 384), 448, (3, 1)), 512, (1, 3))
        x = g.concat([
            cbr(x, 256),
            g.concat([cbr(three, 256, (1, 3)), cbr(three, 256, (3, 1))]),
            g.concat([cbr(double, 256, (1, 3)), cbr(double, 256, (3, 1))]),
            cbr(_average(g, x), 256),
        ])  # fmt: skip
    return g.classifier(x, classes)


def _average(g: GraphBuilder, x: Tensor) -> Tensor:
    return g.average_pool(x, 3, stride=1, padding=1)


ARCHITECTURES = [
    Architecture("googlenet", "inception", googlenet, published=torchvision(1.498, 6_624_904),
                 note="no auxiliary classifiers"),
    Architecture("inception_bn", "inception", inception_bn,
                 published=Published(2.05, 11_295_240, "Cadene's pretrained-models.pytorch, bninception"),
                 note="BN-Inception of MXNet and Caffe"),
    Architecture("inception_v3", "inception", inception_v3, 299, published=torchvision(5.713, 23_834_568),
                 note="no auxiliary classifier, which holds 3,326,696 of torchvision's 27,161,264 parameters"),
    Architecture("inception_v4", "inception", inception_v4, 299,
                 published=Published(12.28, 42_679_816, "timm's results tables")),
]  # fmt: skip
