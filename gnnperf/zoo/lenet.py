"""LeNet and its descendants for 28 x 28 or 32 x 32 digits."""

from __future__ import annotations

from gnnperf.zoo.architecture import Architecture, Published
from gnnperf.zoo.builder import GraphBuilder, Tensor


def lenet5(g: GraphBuilder, x: Tensor, classes: int) -> Tensor:
    """LeCun et al. 1998, with C3 connected fully, as every modern implementation has it."""
    for channels in (6, 16):
        x = g.average_pool(g.unary("Tanh", g.conv(x, channels, 5, bias=True)), 2)
    x = g.flatten(x)
    for features in (120, 84):
        x = g.unary("Tanh", g.linear(x, features))
    return g.linear(x, classes)


def lenet_keras(g: GraphBuilder, x: Tensor, classes: int) -> Tensor:
    """The network that ResPerfNet and PerfNetV2 time: 5x5x32 - pool - 5x5x64 - pool - 100 - classes."""
    for channels in (32, 64):
        x = g.max_pool(g.conv(x, channels, 5, bias=True), 2)
    x = g.relu(g.linear(g.flatten(x), 100))
    return g.linear(x, classes)


def lenet_caffe(g: GraphBuilder, x: Tensor, classes: int) -> Tensor:
    """Caffe's lenet.prototxt: 5x5x20 - pool - 5x5x50 - pool - 500 - classes."""
    for channels in (20, 50):
        x = g.max_pool(g.conv(x, channels, 5, bias=True), 2)
    x = g.relu(g.linear(g.flatten(x), 500))
    return g.softmax(g.linear(x, classes))


def lenet_paddle(g: GraphBuilder, x: Tensor, classes: int) -> Tensor:
    """PaddlePaddle's recognize_digits: 5x5x20 - pool - 5x5x50 - pool - classes."""
    for channels in (20, 50):
        x = g.max_pool(g.relu(g.conv(x, channels, 5, bias=True)), 2)
    return g.softmax(g.linear(g.flatten(x), classes))


_BY_HAND = "sum over the layer table"

ARCHITECTURES = [
    Architecture("lenet", "lenet", lenet_keras, 28, 10, 1, Published(0.003_841_000, 155_606, _BY_HAND),
                 "32 and 64 filters, 100 hidden units, as ResPerfNet timed it"),
    Architecture("lenet5", "lenet", lenet5, 32, 10, 1, Published(0.000_416_520, 61_706, _BY_HAND), "LeCun 1998"),
    Architecture("lenet_caffe", "lenet", lenet_caffe, 28, 10, 1, Published(0.002_293_000, 431_080, _BY_HAND)),
    Architecture("lenet_paddle", "lenet", lenet_paddle, 28, 10, 1, None, "PaddlePaddle's recognize_digits"),
]  # fmt: skip
