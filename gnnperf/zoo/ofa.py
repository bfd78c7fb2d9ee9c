"""Once-for-all MobileNetV3 (Cai et al. 2020): five stages of two to four blocks, kernel 3/5/7, expansion 3/4/6.

A spec is ``ofa/r224-d22334-k<20 digits>-e<20 digits>``: resolution, depth of each stage, kernel and expansion of each
block slot, four slots a stage. Slots beyond a stage's depth are written but not built. ``-w1.2`` at the end scales the
width (default 1.0).

HELP's ``ofa_archs.pt`` does not say which width it measured, and its timings do not tell: linear fits of operator
costs to latency at batch 64 are equally good for 1.0 and 1.2. Give the width where it matters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from gnnperf.errors import ModelFileError
from gnnperf.zoo.architecture import Architecture, make_divisible
from gnnperf.zoo.builder import GraphBuilder, Tensor

PREFIX = "ofa"
EXAMPLE = "ofa/r224-d22334-k35735735735735735735-e34634634634634634634"
_SLOTS = 4
# output channels, stride of the first block, squeeze and excite, hard swish
_STAGES = (
    (24, 2, False, False),
    (40, 2, True, False),
    (80, 2, False, True),
    (112, 1, True, True),
    (160, 2, True, True),
)
_PATTERN = re.compile(
    r"r(?P<resolution>[1-9]\d*)-d(?P<depths>[2-4]{5})-k(?P<kernels>[357]{20})-e(?P<expansions>[346]{20})"
    r"(-w(?P<width>\d+(\.\d+)?))?"
)


def spec(
    kernels: Sequence[int], expansions: Sequence[int], depths: Sequence[int], resolution: int, width: float = 1.0
) -> str:
    """Spec of OFA's ``ks``, ``e``, ``d`` and ``r``."""
    digits = ("".join(str(int(value)) for value in values) for values in (depths, kernels, expansions))
    suffix = "" if width == 1.0 else f"-w{width:g}"
    return f"{PREFIX}/r{int(resolution)}-" + "-".join(map(str.__add__, "dke", digits)) + suffix


def parse(encoding: str) -> Architecture:
    """Architecture of the encoding behind the slash."""
    match = _PATTERN.fullmatch(encoding)
    if match is None:
        raise ModelFileError(f"'{PREFIX}/{encoding}': expected resolution, depths, kernels, expansions as in {EXAMPLE}")
    network = partial(
        ofa_mobilenet_v3,
        kernels=[int(digit) for digit in match["kernels"]],
        expansions=[int(digit) for digit in match["expansions"]],
        depths=[int(digit) for digit in match["depths"]],
        width=float(match["width"] or 1.0),
    )
    return Architecture(f"{PREFIX}/{encoding}", PREFIX, network, int(match["resolution"]))


def ofa_mobilenet_v3(
    g: GraphBuilder,
    x: Tensor,
    classes: int,
    *,
    kernels: Sequence[int],
    expansions: Sequence[int],
    depths: Sequence[int],
    width: float,
) -> Tensor:
    """A subnet cut out of the supernet."""
    first, feature, last = (make_divisible(channels * width) for channels in (16, 960, 1280))
    x = _hard_swish(g, g.conv_bn(x, first, 3, stride=2))
    x = g.add(_block(g, x, first, 3, 1, 1, False, False), x)
    for stage, (base_channels, first_stride, squeeze, hard_swish) in enumerate(_STAGES):
        channels = make_divisible(base_channels * width)
        for index in range(depths[stage]):
            slot, stride = stage * _SLOTS + index, 1 if index else first_stride
            out = _block(g, x, channels, kernels[slot], expansions[slot], stride, squeeze, hard_swish)
            x = g.add(out, x) if stride == 1 and x.channels == channels else out
    x = _hard_swish(g, g.conv_bn(x, feature))
    x = _hard_swish(g, g.conv(g.global_average_pool(x), last))
    return g.linear(g.flatten(x), classes)


def _block(
    g: GraphBuilder, x: Tensor, channels: int, kernel: int, expand: int, stride: int, squeeze: bool, hard_swish: bool
) -> Tensor:
    def activate(value: Tensor) -> Tensor:
        return _hard_swish(g, value) if hard_swish else g.relu(value)

    hidden = make_divisible(x.channels * expand)
    if expand > 1:
        x = activate(g.conv_bn(x, hidden))
    x = activate(g.conv_bn(x, hidden, kernel, stride=stride, groups=hidden))
    if squeeze:
        gate = g.relu(g.conv(g.global_average_pool(x), make_divisible(hidden // 4), bias=True))
        x = g.mul(x, _hard_sigmoid(g, g.conv(gate, hidden, bias=True)))
    return g.conv_bn(x, channels)


# OFA's code predates PyTorch's fused operators: each of these is a chain of launches, and was timed as such.


def _hard_sigmoid(g: GraphBuilder, x: Tensor) -> Tensor:
    return g.binary("Div", g.relu6(g.add(x, 3.0)), 6.0)


def _hard_swish(g: GraphBuilder, x: Tensor) -> Tensor:
    return g.binary("Div", g.mul(x, g.relu6(g.add(x, 3.0))), 6.0)
