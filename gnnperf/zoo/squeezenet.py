"""SqueezeNet 1.0 and 1.1 (Iandola et al. 2016)."""

from __future__ import annotations

from functools import partial

from gnnperf.zoo.architecture import Architecture, torchvision
from gnnperf.zoo.builder import GraphBuilder, Tensor

# (squeeze, expand) of each fire module; None is a pooling layer.
_LAYERS_1_0 = [(16, 64), (16, 64), (32, 128), None, (32, 128), (48, 192), (48, 192), (64, 256), None, (64, 256)]
_LAYERS_1_1 = [(16, 64), (16, 64), None, (32, 128), (32, 128), None, (48, 192), (48, 192), (64, 256), (64, 256)]


def squeezenet(
    g: GraphBuilder, x: Tensor, classes: int, *, stem: tuple[int, int], layers: list[tuple[int, int] | None]
) -> Tensor:
    """``stem`` is (channels, kernel) of the first convolution."""
    x = g.relu(g.conv(x, stem[0], stem[1], stride=2, bias=True))
    x = g.max_pool(x, 3, stride=2, ceil=True)
    for layer in layers:
        x = _fire(g, x, *layer) if layer else g.max_pool(x, 3, stride=2, ceil=True)
    x = g.relu(g.conv(x, classes, bias=True))
    return g.flatten(g.global_average_pool(x))


def _fire(g: GraphBuilder, x: Tensor, squeeze: int, expand: int) -> Tensor:
    x = g.relu(g.conv(x, squeeze, bias=True))
    return g.concat([g.relu(g.conv(x, expand, bias=True)), g.relu(g.conv(x, expand, 3, padding=1, bias=True))])


ARCHITECTURES = [
    Architecture("squeezenet1_0", "squeezenet", partial(squeezenet, stem=(96, 7), layers=_LAYERS_1_0),
                 published=torchvision(0.819, 1_248_424)),
    Architecture("squeezenet1_1", "squeezenet", partial(squeezenet, stem=(64, 3), layers=_LAYERS_1_1),
                 published=torchvision(0.349, 1_235_496)),
]  # fmt: skip
