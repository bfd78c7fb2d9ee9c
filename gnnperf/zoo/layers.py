"""Networks of a single layer, for measurements of layers by themselves.

Specs, of which :func:`parse` and ``str()`` are inverses; parts in this order, those in brackets optional:

* ``conv/i<image>-c<channels>-f<filters>-k<kernel>-s<stride>-<same|valid>[-g<groups>][-bias][-<activation>]``
* ``dense/c<inputs>-f<outputs>[-bias][-<activation>]``
* ``pool/i<image>-c<channels>-k<kernel>-s<stride>-<same|valid>-<max|average>``

Padding is TensorFlow's. Activations are relu, relu6, sigmoid and tanh.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gnnperf.errors import ModelFileError
from gnnperf.zoo.architecture import Architecture
from gnnperf.zoo.builder import GraphBuilder, Tensor

FAMILY = "layer"
EXAMPLES = {
    "conv": "conv/i56-c64-f128-k3-s1-same-bias-relu",
    "dense": "dense/c4096-f1000-bias-relu",
    "pool": "pool/i56-c64-k2-s2-valid-max",
}
ACTIVATIONS = {"relu": "Relu", "relu6": "Clip", "sigmoid": "Sigmoid", "tanh": "Tanh"}


@dataclass(frozen=True, slots=True)
class ConvLayer:
    """A 2-D convolution over a square image."""

    image: int
    channels: int
    filters: int
    kernel: int
    stride: int = 1
    padding: str = "same"
    groups: int = 1
    bias: bool = False
    activation: str | None = None

    def __str__(self) -> str:
        groups = f"-g{self.groups}" if self.groups != 1 else ""
        size = f"i{self.image}-c{self.channels}-f{self.filters}-k{self.kernel}-s{self.stride}"
        return f"conv/{size}-{self.padding}{groups}{_suffix(self.bias, self.activation)}"

    def network(self, g: GraphBuilder, x: Tensor, classes: None) -> Tensor:
        """Add the layer."""
        padding = "same" if self.padding == "same" else 0
        out = g.conv(
            x, self.filters, self.kernel, stride=self.stride, padding=padding, groups=self.groups, bias=self.bias
        )
        return _activate(g, out, self.activation)


@dataclass(frozen=True, slots=True)
class DenseLayer:
    """A fully connected layer."""

    channels: int
    filters: int
    bias: bool = False
    activation: str | None = None

    def __str__(self) -> str:
        return f"dense/c{self.channels}-f{self.filters}{_suffix(self.bias, self.activation)}"

    def network(self, g: GraphBuilder, x: None, classes: None) -> Tensor:
        """Add the input and the layer."""
        out = g.linear(g.input("input", (self.channels,)), self.filters, bias=self.bias)
        return _activate(g, out, self.activation)


@dataclass(frozen=True, slots=True)
class PoolLayer:
    """A pooling layer over a square image."""

    image: int
    channels: int
    kernel: int
    stride: int
    padding: str = "valid"
    kind: str = "max"

    def __str__(self) -> str:
        size = f"i{self.image}-c{self.channels}-k{self.kernel}-s{self.stride}"
        return f"pool/{size}-{self.padding}-{self.kind}"

    def network(self, g: GraphBuilder, x: Tensor, classes: None) -> Tensor:
        """Add the layer."""
        padding = "same" if self.padding == "same" else 0
        if self.kind == "max":
            return g.max_pool(x, self.kernel, stride=self.stride, padding=padding)
        return g.average_pool(x, self.kernel, stride=self.stride, padding=padding, count_padding=False)


Layer = ConvLayer | DenseLayer | PoolLayer

_SIZES = r"i(?P<image>\d+)-c(?P<channels>\d+)"
_TAIL = r"(?P<bias>-bias)?(-(?P<activation>relu|relu6|sigmoid|tanh))?"
_PATTERNS = {
    "conv": rf"{_SIZES}-f(?P<filters>\d+)-k(?P<kernel>\d+)-s(?P<stride>\d+)-(?P<padding>same|valid)"
    rf"(-g(?P<groups>\d+))?{_TAIL}",
    "dense": rf"c(?P<channels>\d+)-f(?P<filters>\d+){_TAIL}",
    "pool": rf"{_SIZES}-k(?P<kernel>\d+)-s(?P<stride>\d+)-(?P<padding>same|valid)-(?P<kind>max|average)",
}
_CLASSES = {"conv": ConvLayer, "dense": DenseLayer, "pool": PoolLayer}


def is_single_layer(spec: str) -> bool:
    """Whether a specification is that of a layer rather than of a network."""
    return spec.partition("/")[0] in EXAMPLES


def parse(spec: str) -> Layer:
    """The layer that a spec describes.

    Raises:
        ModelFileError: the spec is not of the form above, or a size is zero.
    """
    kind, _, encoding = spec.partition("/")
    match = re.fullmatch(_PATTERNS[kind], encoding) if kind in _PATTERNS else None
    if match is None:
        example = EXAMPLES.get(kind, EXAMPLES["conv"])
        raise ModelFileError(f"{spec!r} does not describe a layer; it looks like {example}")
    if re.search(r"\d{10}", encoding):
        raise ModelFileError(f"{spec!r}: sizes have nine digits at most")
    values: dict = {}
    for key, value in match.groupdict().items():
        if key == "bias":
            values[key] = value is not None
        elif value is not None:
            values[key] = int(value) if value.isdecimal() else value
    if 0 in [value for key, value in values.items() if key != "bias"]:
        raise ModelFileError(f"{spec!r}: sizes have to be positive")
    groups = values.get("groups", 1)
    if values["channels"] % groups or values.get("filters", groups) % groups:
        raise ModelFileError(f"{spec!r}: channels and filters have to be multiples of the groups")
    return _CLASSES[kind](**values)


def architecture(layer: Layer) -> Architecture:
    """Zoo entry of a layer."""
    image = None if isinstance(layer, DenseLayer) else layer.image
    return Architecture(str(layer), FAMILY, layer.network, image, None, layer.channels)


def _suffix(bias: bool, activation: str | None) -> str:
    return ("-bias" if bias else "") + (f"-{activation}" if activation else "")


def _activate(g: GraphBuilder, x: Tensor, activation: str | None) -> Tensor:
    if activation is None:
        return x
    return g.relu6(x) if activation == "relu6" else g.unary(ACTIVATIONS[activation], x)
