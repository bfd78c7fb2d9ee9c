"""DenseNet (Huang et al. 2016)."""

from __future__ import annotations

from functools import partial

from gnnperf.zoo.architecture import Architecture, torchvision
from gnnperf.zoo.builder import GraphBuilder, Tensor


def densenet(
    g: GraphBuilder, x: Tensor, classes: int, *, blocks: tuple[int, ...], growth: int = 32, stem: int = 64
) -> Tensor:
    """Every layer concatenates all features before it anew, which is how PyTorch runs it."""
    x = g.max_pool(g.conv_bn_relu(x, stem, 7, stride=2), 3, stride=2, padding=1)
    for number, layers in enumerate(blocks):
        features = [x]
        for _ in range(layers):
            x = g.concat(features) if len(features) > 1 else features[0]
            x = g.conv(g.relu(g.batch_norm(x)), 4 * growth)
            x = g.conv(g.relu(g.batch_norm(x)), growth, 3, padding=1)
            features.append(x)
        x = g.relu(g.batch_norm(g.concat(features)))
        if number < len(blocks) - 1:
            x = g.average_pool(g.conv(x, x.channels // 2), 2)
    return g.classifier(x, classes)


def _entry(name: str, gmacs: float, parameters: int, **options) -> Architecture:
    return Architecture(name, "densenet", partial(densenet, **options), published=torchvision(gmacs, parameters))


ARCHITECTURES = [
    _entry("densenet121", 2.834, 7_978_856, blocks=(6, 12, 24, 16)),
    _entry("densenet161", 7.728, 28_681_000, blocks=(6, 12, 36, 24), growth=48, stem=96),
    _entry("densenet169", 3.360, 14_149_480, blocks=(6, 12, 32, 32)),
    _entry("densenet201", 4.291, 20_013_928, blocks=(6, 12, 48, 32)),
]
