"""NAS-Bench-201 (Dong and Yang 2020): 15,625 cells of six edges, each one of five operations.

A spec is ``nasbench201/`` and six digits, one for each edge in the order of the architecture string
``|op~0|+|op~0|op~1|+|op~0|op~1|op~2|``; a digit is the operation's index in :data:`OPERATIONS`.

The graph is what PyTorch runs, not the smallest equivalent. Timings of all 15,625 networks (HELP, GTX 1080 Ti, batch 1)
show it: a ``none`` edge costs 0.32 ms a network more than ``skip_connect`` over its 15 cells, so it is the
multiplication by zero of the reference code; and a convolution whose result no live edge takes costs as much as
another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from gnnperf.errors import ModelFileError
from gnnperf.zoo.architecture import Architecture
from gnnperf.zoo.builder import GraphBuilder, Tensor

PREFIX = "nasbench201"
EXAMPLE = "nasbench201/012340"
OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
_CELLS_PER_STAGE = 5


def from_arch_string(text: str) -> str:
    """Spec of an architecture string such as ``|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|...|``.

    Raises:
        ModelFileError: the string is not one of NAS-Bench-201's.
    """
    edges = re.findall(r"([a-z0-9_]+)~(\d)", text)
    if [source for _, source in edges] != list("001012") or any(name not in OPERATIONS for name, _ in edges):
        raise ModelFileError(f"{text!r} is no NAS-Bench-201 string; it looks like {to_arch_string(EXAMPLE)}")
    return f"{PREFIX}/" + "".join(str(OPERATIONS.index(name)) for name, _ in edges)


def to_arch_string(spec: str) -> str:
    """The inverse of :func:`from_arch_string`."""
    ops = [OPERATIONS[index] for index in _digits(spec.removeprefix(f"{PREFIX}/"))]
    nodes = (ops[:1], ops[1:3], ops[3:])
    return "+".join("|" + "|".join(f"{op}~{source}" for source, op in enumerate(node)) + "|" for node in nodes)


def parse(encoding: str) -> Architecture:
    """Architecture of the six digits."""
    digits = _digits(encoding)
    return Architecture(f"{PREFIX}/{encoding}", PREFIX, partial(nasbench201, edges=digits), 32, 10)


def nasbench201(g: GraphBuilder, x: Tensor, classes: int, *, edges: Sequence[int]) -> Tensor:
    """Three stages of five cells with 16, 32 and 64 channels, residual blocks of stride 2 between them."""
    x = g.conv_bn(x, 16, 3)
    for channels in (16, 32, 64):
        if channels != x.channels:
            x = _reduction(g, x, channels)
        for _ in range(_CELLS_PER_STAGE):
            x = _cell(g, x, edges)
    return g.classifier(g.relu(g.batch_norm(x)), classes)


def _cell(g: GraphBuilder, x: Tensor, edges: Sequence[int]) -> Tensor:
    nodes = [x]
    remaining = iter(edges)
    for target in (1, 2, 3):
        # Python's sum() starts from the integer 0, so PyTorch launches one addition for the first term too.
        total = g.add(_edge(g, nodes[0], next(remaining)), 0.0)
        for source in range(1, target):
            total = g.add(total, _edge(g, nodes[source], next(remaining)))
        nodes.append(total)
    return nodes[-1]


def _edge(g: GraphBuilder, x: Tensor, operation: int) -> Tensor:
    match OPERATIONS[operation]:
        case "none":
            return g.mul(x, 0.0)
        case "skip_connect":
            return x
        case "nor_conv_1x1":
            return g.conv_bn(g.relu(x), x.channels)
        case "nor_conv_3x3":
            return g.conv_bn(g.relu(x), x.channels, 3)
        case _:
            return g.average_pool(x, 3, stride=1, padding=1, count_padding=False)


def _reduction(g: GraphBuilder, x: Tensor, channels: int) -> Tensor:
    out = g.conv_bn(g.relu(x), channels, 3, stride=2)
    out = g.conv_bn(g.relu(out), channels, 3)
    return g.add(g.conv(g.average_pool(x, 2), channels), out)


def _digits(encoding: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[0-4]{6}", encoding):
        raise ModelFileError(f"'{PREFIX}/{encoding}': expected six digits from 0 to 4, as in {EXAMPLE}")
    return tuple(int(digit) for digit in encoding)
