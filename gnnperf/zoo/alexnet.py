"""AlexNet (Krizhevsky et al. 2012) and its three usual readings."""

from __future__ import annotations

from functools import partial

from gnnperf.zoo.architecture import Architecture, Published, torchvision
from gnnperf.zoo.builder import GraphBuilder, Tensor


def alexnet(g: GraphBuilder, x: Tensor, classes: int) -> Tensor:
    """The "one weird trick" reading that torchvision ships: one tower, 64-192-384-256-256, no LRN."""
    x = g.max_pool(g.relu(g.conv(x, 64, 11, stride=4, padding=2, bias=True)), 3, stride=2)
    x = g.max_pool(g.relu(g.conv(x, 192, 5, padding=2, bias=True)), 3, stride=2)
    for channels in (384, 256, 256):
        x = g.relu(g.conv(x, channels, 3, padding=1, bias=True))
    x = g.adaptive_average_pool(g.max_pool(x, 3, stride=2), 6)
    return _head(g, x, classes)


def alexnet_2012(g: GraphBuilder, x: Tensor, classes: int, *, groups: int, lrn: bool) -> Tensor:
    """96-256-384-384-256; with two groups and LRN it is Caffe's bvlc_alexnet."""
    normalise = g.lrn if lrn else lambda value: value
    x = g.max_pool(normalise(g.relu(g.conv(x, 96, 11, stride=4, bias=True))), 3, stride=2)
    x = g.max_pool(normalise(g.relu(g.conv(x, 256, 5, padding=2, groups=groups, bias=True))), 3, stride=2)
    for channels, split in ((384, 1), (384, groups), (256, groups)):
        x = g.relu(g.conv(x, channels, 3, padding=1, groups=split, bias=True))
    return _head(g, g.max_pool(x, 3, stride=2), classes)


def alexnet_tensorflow(g: GraphBuilder, x: Tensor, classes: int) -> Tensor:
    """The reading of TensorFlow's tf_cnn_benchmarks: 64-192-384-384-256, first convolution without padding, no LRN."""
    x = g.max_pool(g.relu(g.conv(x, 64, 11, stride=4, bias=True)), 3, stride=2)
    x = g.max_pool(g.relu(g.conv(x, 192, 5, padding=2, bias=True)), 3, stride=2)
    for channels in (384, 384, 256):
        x = g.relu(g.conv(x, channels, 3, padding=1, bias=True))
    return _head(g, g.max_pool(x, 3, stride=2), classes)


def _head(g: GraphBuilder, x: Tensor, classes: int) -> Tensor:
    x = g.flatten(x)
    for _ in range(2):
        x = g.relu(g.linear(x, 4096))
    return g.linear(x, classes)


ARCHITECTURES = [
    Architecture("alexnet", "alexnet", alexnet, published=torchvision(0.714, 61_100_840)),
    Architecture("caffe_alexnet", "alexnet", partial(alexnet_2012, groups=2, lrn=True), 227,
                 published=Published(0.724, 60_965_224, "Krizhevsky et al. 2012; bvlc_alexnet.caffemodel"),
                 note="two groups, LRN, 227 pixels"),
    Architecture("tf_alexnet", "alexnet", alexnet_tensorflow, 227, note="tf_cnn_benchmarks, 227 pixels"),
    Architecture("alexnet_single_tower", "alexnet", partial(alexnet_2012, groups=1, lrn=False), 227,
                 published=Published(1.135, 62_378_344, "sum over the layer table"),
                 note="no groups, no LRN, 227 pixels, as ResPerfNet timed it"),
    Architecture("mxnet_alexnet", "alexnet", partial(alexnet_2012, groups=1, lrn=True), 227,
                 published=Published(1.135, 62_378_344, "sum over the layer table"),
                 note="no groups, LRN, as MXNet's symbol"),
]  # fmt: skip
