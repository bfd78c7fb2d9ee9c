"""ResNet (He et al. 2015), its pre-activation form (2016), ResNeXt (Xie et al. 2016) and wide ResNet (2016)."""

from __future__ import annotations

from functools import partial

from gnnperf.zoo.architecture import Architecture, Published, torchvision
from gnnperf.zoo.builder import GraphBuilder, Tensor

_DEPTHS = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
    200: (3, 24, 36, 3),
}


def resnet(
    g: GraphBuilder,
    x: Tensor,
    classes: int,
    *,
    depth: int,
    groups: int = 1,
    base_width: int = 64,
    stride_first: bool = False,
) -> Tensor:
    """Basic blocks up to depth 34, bottlenecks beyond.

    ``stride_first`` halves the size in a bottleneck's first 1x1 convolution, as the paper and Caffe's model do;
    torchvision, and everything trained after Torch's fb.resnet, does it in the 3x3 one.
    """
    x = g.max_pool(g.conv_bn_relu(x, 64, 7, stride=2), 3, stride=2, padding=1)
    for stage, repeats in enumerate(_DEPTHS[depth]):
        planes = 64 << stage
        for index in range(repeats):
            stride = 2 if stage and not index else 1
            if depth <= 34:
                x = _basic(g, x, planes, stride)
            else:
                x = _bottleneck(g, x, planes, planes * base_width // 64 * groups, stride, groups, stride_first)
    return g.classifier(x, classes)


def preact_resnet(g: GraphBuilder, x: Tensor, classes: int, *, depth: int) -> Tensor:
    """Identity mappings: batch normalisation and ReLU before each convolution, bottlenecks only."""
    x = g.max_pool(g.conv_bn_relu(x, 64, 7, stride=2), 3, stride=2, padding=1)
    for stage, repeats in enumerate(_DEPTHS[depth]):
        planes = 64 << stage
        for index in range(repeats):
            stride = 2 if stage and not index else 1
            active = g.relu(g.batch_norm(x))
            shortcut = x if index else g.conv(active, 4 * planes, stride=stride)
            x = g.conv(active, planes)
            x = g.conv(g.relu(g.batch_norm(x)), planes, 3, stride=stride, padding=1)
            x = g.conv(g.relu(g.batch_norm(x)), 4 * planes)
            x = g.add(x, shortcut)
    return g.classifier(g.relu(g.batch_norm(x)), classes)


def _basic(g: GraphBuilder, x: Tensor, planes: int, stride: int) -> Tensor:
    out = g.conv_bn_relu(x, planes, 3, stride=stride)
    out = g.conv_bn(out, planes, 3)
    return g.relu(g.add(out, _shortcut(g, x, planes, stride)))


def _bottleneck(
    g: GraphBuilder, x: Tensor, planes: int, width: int, stride: int, groups: int, stride_first: bool
) -> Tensor:
    first, second = (stride, 1) if stride_first else (1, stride)
    out = g.conv_bn_relu(x, width, stride=first)
    out = g.conv_bn_relu(out, width, 3, stride=second, groups=groups)
    out = g.conv_bn(out, 4 * planes)
    return g.relu(g.add(out, _shortcut(g, x, 4 * planes, stride)))


def _shortcut(g: GraphBuilder, x: Tensor, channels: int, stride: int) -> Tensor:
    return x if stride == 1 and x.channels == channels else g.conv_bn(x, channels, stride=stride)


_PAPER = "He et al. 2015, table 1"


def _entry(name: str, counts: Published | None, note: str = "", **options) -> Architecture:
    return Architecture(name, "resnet", partial(resnet, **options), published=counts, note=note)


ARCHITECTURES = [
    _entry("resnet18", torchvision(1.814, 11_689_512), depth=18),
    _entry("resnet34", torchvision(3.664, 21_797_672), depth=34),
    _entry("resnet50", torchvision(4.089, 25_557_032), depth=50),
    _entry("resnet101", torchvision(7.801, 44_549_160), depth=101),
    _entry("resnet152", torchvision(11.514, 60_192_808), depth=152),
    _entry("resnet200", Published(15.07, 64_673_832, "timm's results tables"), depth=200),
    _entry("resnext50_32x4d", torchvision(4.230, 25_028_904), depth=50, groups=32, base_width=4),
    _entry("resnext101_32x8d", torchvision(16.414, 88_791_336), depth=101, groups=32, base_width=8),
    _entry("resnext101_64x4d", torchvision(15.460, 83_455_272), depth=101, groups=64, base_width=4),
    _entry("wide_resnet50_2", torchvision(11.398, 68_883_240), depth=50, base_width=128),
    _entry("wide_resnet101_2", torchvision(22.753, 126_886_696), depth=101, base_width=128),
    *(
        _entry(f"caffe_resnet{depth}", Published(gmacs, None, _PAPER), "stride in the first 1x1", depth=depth,
               stride_first=True)
        for depth, gmacs in ((50, 3.8), (101, 7.6), (152, 11.3))
    ),
    *(
        Architecture(f"preact_resnet{depth}", "resnet", partial(preact_resnet, depth=depth),
                     note="He et al. 2016, as MXNet's and fb.resnet.torch's models of this depth")
        for depth in (50, 101, 152, 200)
    ),
]  # fmt: skip
