"""From a spec to its architecture: the names of the zoo, and the search spaces and layers whose specs are parsed."""

from __future__ import annotations

import difflib
import functools
import re

from gnnperf.errors import ModelFileError
from gnnperf.zoo import (
    alexnet,
    densenet,
    efficientnet,
    fbnet,
    inception,
    layers,
    lenet,
    mnasnet,
    mobilenet,
    nasbench201,
    ofa,
    resnet,
    shufflenet,
    squeezenet,
    timm,
    transformer,
    user_file,
    vgg,
)
from gnnperf.zoo.architecture import Architecture

_FAMILIES = (
    lenet, alexnet, vgg, resnet, densenet, squeezenet, inception, mobilenet, mnasnet, shufflenet, efficientnet,
    transformer,
)  # fmt: skip
_NAMED = {architecture.name: architecture for family in _FAMILIES for architecture in family.ARCHITECTURES}
_SPACES = {space.PREFIX: space for space in (nasbench201, fbnet, ofa, timm, user_file)}  # the last two by name alone

# One spec of each kind that is parsed rather than listed.
EXAMPLES = (nasbench201.EXAMPLE, fbnet.EXAMPLE, ofa.EXAMPLE, transformer.EXAMPLE, *layers.EXAMPLES.values())


def names() -> list[str]:
    """Every name in the zoo, family by family. Search spaces and layers have specs without number instead."""
    return list(_NAMED)


def split_image(spec: str) -> tuple[str, int | None]:
    """``"resnet50@160"`` -> ``("resnet50", 160)``; the size is None where the spec has none.

    Raises:
        ModelFileError: what follows the ``@`` is no size.
    """
    name, at, size = spec.partition("@")
    if at and not re.fullmatch(r"[1-9]\d{0,8}", size):
        raise ModelFileError(f"{spec!r}: an image size in pixels has to follow the @, as in resnet50@160")
    return name, int(size) if at else None


@functools.lru_cache(maxsize=4096)
def describe(spec: str) -> Architecture:
    """The architecture that a spec names; an ``@size`` is allowed and left aside.

    Raises:
        ModelFileError: nothing in the zoo has this name, or an encoding is invalid.
    """
    name, _ = split_image(spec)
    if name in _NAMED:
        return _NAMED[name]
    prefix, slash, encoding = name.partition("/")
    if slash and prefix in _SPACES:
        return _SPACES[prefix].parse(encoding)
    if slash and prefix in layers.EXAMPLES:
        return layers.architecture(layers.parse(name))
    base, question, query = name.partition("?")
    config = transformer.KINDS.get(base) or transformer.CONFIGS.get(base, (None,))[0]
    if question and config:
        return transformer.architecture(name, transformer.configure(config, query, name))
    raise ModelFileError(f"no architecture {name!r} in the zoo{_suggestion(name)}")


def _suggestion(name: str) -> str:
    known = [*_NAMED, *_SPACES, *layers.EXAMPLES, *transformer.KINDS]
    close = difflib.get_close_matches(re.split(r"[/?]", name)[0].lower().replace("-", "_"), known, n=3)
    if not close:
        return "; `gnnperf zoo list` shows all of them"
    examples = {example.split("/")[0]: example for example in EXAMPLES}
    return "; did you mean " + " or ".join(examples.get(match, match) for match in close) + "?"
