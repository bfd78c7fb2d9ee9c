"""VGG (Simonyan and Zisserman 2014), configurations A, B, D and E, with and without batch normalisation."""

from __future__ import annotations

from functools import partial

from gnnperf.zoo.architecture import Architecture, torchvision
from gnnperf.zoo.builder import GraphBuilder, Tensor

_DEPTHS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def vgg(g: GraphBuilder, x: Tensor, classes: int, *, depth: int, batch_norm: bool = False) -> Tensor:
    """Five blocks of 3x3 convolutions and three linear layers."""
    for channels, repeats in zip((64, 128, 256, 512, 512), _DEPTHS[depth], strict=True):
        for _ in range(repeats):
            x = g.conv(x, channels, 3, padding=1, bias=True)
            x = g.relu(g.batch_norm(x) if batch_norm else x)
        x = g.max_pool(x, 2)
    x = g.flatten(g.adaptive_average_pool(x, 7))
    for _ in range(2):
        x = g.relu(g.linear(x, 4096))
    return g.linear(x, classes)


_COUNTS = {
    "vgg11": torchvision(7.609, 132_863_336),
    "vgg13": torchvision(11.308, 133_047_848),
    "vgg16": torchvision(15.470, 138_357_544),
    "vgg19": torchvision(19.632, 143_667_240),
    "vgg11_bn": torchvision(7.609, 132_868_840),
    "vgg13_bn": torchvision(11.308, 133_053_736),
    "vgg16_bn": torchvision(15.470, 138_365_992),
    "vgg19_bn": torchvision(19.632, 143_678_248),
}

ARCHITECTURES = [
    Architecture(name, "vgg", partial(vgg, depth=int(name[3:5]), batch_norm=name.endswith("_bn")), published=counts)
    for name, counts in _COUNTS.items()
]
