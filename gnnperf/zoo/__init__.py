"""Architectures written as ONNX without weights, each from a self-describing spec.

Specs: a name (``resnet50``), a name at an image size (``resnet50@160``), a point of a search space
(``nasbench201/012340``, ``fbnet/0-3-8-...``, ``ofa/r224-d22334-k...-e...``), a transformer configuration
(``bert?layers=12&hidden=768&heads=12&seq=128``) or a layer (``conv/i56-c64-f128-k3-s1-same-bias-relu``,
``dense/c4096-f1000``, ``pool/i56-c64-k2-s2-valid-max``).
"""

from __future__ import annotations

from typing import NamedTuple

import onnx

from gnnperf.errors import ModelFileError
from gnnperf.zoo.architecture import Architecture, Published
from gnnperf.zoo.builder import GraphBuilder, Tensor
from gnnperf.zoo.nasbench201 import from_arch_string
from gnnperf.zoo.registry import EXAMPLES, describe, names, split_image
from gnnperf.zoo.weights import fill_weights

__all__ = [
    "EXAMPLES",
    "Architecture",
    "Counts",
    "Published",
    "build",
    "count",
    "default_image",
    "describe",
    "family",
    "fill_weights",
    "from_arch_string",
    "names",
]


MAX_SIZE = 2**20
"""Largest batch, image side and number of classes: far beyond what any device holds."""


class Counts(NamedTuple):
    """What a network computes and holds, as the builder counts it.

    Attributes:
        macs: multiply-accumulates of convolutions and matrix products.
        parameters: trainable elements.
    """

    macs: int
    parameters: int


def build(spec: str, batch: int | str = 1, image: int | None = None, *, classes: int | None = None) -> onnx.ModelProto:
    """Write an architecture as ONNX: initializers carry name, dims and dtype, but no payload.

    Args:
        spec: what to build, see the module's description.
        batch: batch size; a string such as ``"N"`` makes the batch a symbolic dimension of that name.
        image: height and width of the input in pixels, for other than the default.
        classes: number of classes, for other than the default.

    Raises:
        ModelFileError: the spec is unknown or invalid, the image is too small for the network, or an image size or a
            number of classes is given for a network that has none.
    """
    builder, output = _grow(spec, batch, image, classes)
    return builder.finish(output)


def count(spec: str, batch: int = 1, image: int | None = None, *, classes: int | None = None) -> Counts:
    """Multiply-accumulates and parameters of an architecture; arguments and errors as in :func:`build`."""
    builder, _ = _grow(spec, batch, image, classes)
    return Counts(builder.macs, builder.parameters)


def family(spec: str) -> str:
    """Family of related architectures that a spec belongs to, such as ``"resnet"`` for ``resnext50_32x4d``."""
    return describe(spec).family


def default_image(spec: str) -> int | None:
    """Height and width that :func:`build` takes when nothing else is said; None where the input is no image."""
    return split_image(spec)[1] or describe(spec).image


def _grow(spec: str, batch: int | str, image: int | None, classes: int | None) -> tuple[GraphBuilder, Tensor]:
    architecture = describe(spec)
    if (isinstance(batch, int) and batch < 1) or batch == "":
        raise ModelFileError(f"batch is {batch!r}: give a positive number or the name of a symbolic dimension")
    written = split_image(spec)[1]
    size = image or written or architecture.image
    if architecture.image is None and size:
        raise ModelFileError(f"{architecture.name} takes no image, so it has no image size to set")
    if written and image and written != image:
        raise ModelFileError(f"{spec!r} says {written} pixels and the image size {image}: give one of them")
    if image is not None and image < 1:
        raise ModelFileError(f"image is {image}: give a positive number of pixels")
    if classes is not None and (architecture.classes is None or classes < 1):
        raise ModelFileError(f"{architecture.name} cannot have {classes} classes")
    for what, number in (("batch", batch), ("image", size), ("classes", classes)):
        if isinstance(number, int) and number > MAX_SIZE:
            raise ModelFileError(f"{what} is {number}: at most {MAX_SIZE:,} are possible")
    builder = GraphBuilder(spec, batch)
    pixels = builder.image(size, architecture.channels) if size else None
    return builder, architecture.network(builder, pixels, classes or architecture.classes)
