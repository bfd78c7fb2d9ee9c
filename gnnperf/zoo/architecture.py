"""What the zoo knows of an architecture, and how a network function is written.

A network function takes a builder, the input image and the number of classes, and returns the logits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gnnperf.zoo.builder import GraphBuilder, Tensor

ImageNetwork = Callable[[GraphBuilder, Tensor, int], Tensor]


@dataclass(frozen=True, slots=True)
class Published:
    """Counts that others published for the architecture at its default image size, batch 1.

    Attributes:
        gmacs: multiply-accumulates, in thousands of millions; None where the source gives none.
        parameters: trainable elements; None where the source gives none.
        source: where the counts come from.
    """

    gmacs: float | None
    parameters: int | None
    source: str


@dataclass(frozen=True, slots=True)
class Architecture:
    """An entry of the zoo.

    Attributes:
        name: the spec that :func:`gnnperf.zoo.build` takes.
        family: group of related architectures; what leave-one-family-out evaluations hold out.
        network: adds the whole network to a builder. Networks without an image input take ``None`` as image and make
            their own inputs.
        image: default height and width of the input, None where the input is no image.
        classes: default number of classes, None where the network is no classifier.
        channels: channels of the input image.
        published: counts to check against.
        note: what a reader has to know to tell this variant from its namesakes.
    """

    name: str
    family: str
    network: Callable[[GraphBuilder, Tensor | None, int | None], Tensor]
    image: int | None = 224
    classes: int | None = 1000
    channels: int = 3
    published: Published | None = None
    note: str = ""


def torchvision(gmacs: float, parameters: int) -> Published:
    """Counts as torchvision's model tables list them; their "GFLOPS" are multiply-accumulates."""
    return Published(gmacs, parameters, "torchvision model tables (pytorch.org/vision/stable/models.html)")


def make_divisible(value: float, divisor: int = 8) -> int:
    """Channel rounding of the MobileNet line: nearest multiple, never more than 10 % below ``value``."""
    rounded = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded
