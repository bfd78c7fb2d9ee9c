"""FBNet's search space (Wu et al. 2018) at CIFAR size, as HW-NAS-Bench and HELP measure it.

A spec is ``fbnet/`` and 22 digits or dash-separated indices into :data:`OPERATIONS`, one for each layer.

The macro-architecture is HW-NAS-Bench's for CIFAR-100. HELP's 5,000 timings on a GTX 1080 Ti agree with it where they
can tell: the cost of each operation per layer drops at layers 5, 9 and 17 (the strides) and nowhere else, the first
``skip`` of a stage costs a convolution with normalisation and ReLU, later ones nothing, and ``g2`` adds 0.1 ms a layer
at batch 1, more than grouping alone explains: the channel shuffle.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from gnnperf.errors import ModelFileError
from gnnperf.zoo.architecture import Architecture
from gnnperf.zoo.builder import GraphBuilder, Tensor

PREFIX = "fbnet"
EXAMPLE = "fbnet/0-3-8-1-7-4-8-8-2-6-1-4-7-3-2-7-3-2-4-2-4-5"
OPERATIONS = ("k3_e1", "k3_e1_g2", "k3_e3", "k3_e6", "k5_e1", "k5_e1_g2", "k5_e3", "k5_e6", "skip")
# output channels, layers, stride of the first layer
_STAGES = ((16, 1, 1), (24, 4, 1), (32, 4, 2), (64, 4, 2), (112, 4, 1), (184, 4, 2), (352, 1, 1))
# output channels and stride of each layer
_LAYERS = [(channels, 1 if index else stride) for channels, count, stride in _STAGES for index in range(count)]
_HEAD_CHANNELS = 1504


def spec(indices: Sequence[int]) -> str:
    """Spec of 22 operation indices."""
    return f"{PREFIX}/" + "-".join(str(int(index)) for index in indices)


def parse(encoding: str) -> Architecture:
    """Architecture of dash-separated indices."""
    if not re.fullmatch(rf"[0-8](-[0-8]){{{len(_LAYERS) - 1}}}", encoding):
        raise ModelFileError(
            f"'{PREFIX}/{encoding}': expected {len(_LAYERS)} indices from 0 to 8 with dashes between, as in {EXAMPLE}"
        )
    operations = [OPERATIONS[int(index)] for index in encoding.split("-")]
    return Architecture(f"{PREFIX}/{encoding}", PREFIX, partial(fbnet, operations=operations), 32, 100)


def fbnet(g: GraphBuilder, x: Tensor, classes: int, *, operations: Sequence[str]) -> Tensor:
    """Stem, 22 searched layers, head."""
    x = g.conv_bn_relu(x, 16, 3)
    for operation, (channels, stride) in zip(operations, _LAYERS, strict=True):
        x = _layer(g, x, operation, channels, stride)
    return g.classifier(g.conv_bn_relu(x, _HEAD_CHANNELS), classes)


def _layer(g: GraphBuilder, x: Tensor, operation: str, channels: int, stride: int) -> Tensor:
    same = stride == 1 and x.channels == channels
    if operation == "skip":
        return x if same else g.conv_bn_relu(x, channels, stride=stride)
    kernel, expand = int(operation[1]), int(operation[4])
    groups = 2 if operation.endswith("_g2") else 1
    hidden = x.channels * expand
    out = g.conv_bn_relu(x, hidden, groups=groups)
    if groups > 1:
        out = g.channel_shuffle(out, groups)
    out = g.conv_bn_relu(out, hidden, kernel, stride=stride, groups=hidden)
    out = g.conv_bn(out, channels, groups=groups)
    return g.add(out, x) if same else out
