"""Architectures of timm (huggingface/pytorch-image-models), ``timm/<name>@<image>``: known by name, not written here.

Which family a name belongs to decides what is held out together with it, so a name that has kin among the zoo's other
architectures takes their family: RepVGG that of VGG, ResNeXt and its many variants that of ResNet.
"""

from __future__ import annotations

import re
from typing import NoReturn

from gnnperf.errors import ModelFileError
from gnnperf.zoo.architecture import Architecture

PREFIX = "timm"

_TRANSFORMERS = (
    r"vit|^(beit|deit|eva|aimv2|cait|caformer|coat|davit|edgenext|efficientformer|(sam2_)?hiera|nest|pit|pvt|swin|tnt|twins"
    r"|visformer|volo|xcit|swiftformer)"
)
# The first pattern that is found in a name decides.
_FAMILIES = tuple(
    (re.compile(pattern), family)
    for pattern, family in (
        (r"vgg", "vgg"),  # RepVGG too
        (r"repvit", "repvit"),  # convolutions only
        (_TRANSFORMERS, "transformer"),
        (r"^(conv|pool)former", "metaformer"),
        (r"^(gmixer|gmlp|mixer|resmlp)", "mlp"),
        (r"densenet|rdnet", "densenet"),
        (r"inception_(v|resnet)|googlenet", "inception"),
        (r"inception_next|convnext", "convnext"),
        (r"resne|res2ne|senet|gernet|botne|halone|halobot|halo2bot", "resnet"),
        (r"regnet", "regnet"),
        (r"mnasnet|spnasnet", "mnasnet"),
        (r"nasnet", "nasnet"),
        (r"efficientnet|tinynet", "efficientnet"),
        (r"mobilenet|mobileone|hardcorenas|lcnet|fbnet", "mobilenet"),  # not the search space that zoo.fbnet encodes
        (r"darknet|cs3edgenet|cs3se", "darknet"),
        (r"ghost", "ghostnet"),
        (r"vovnet", "vovnet"),
        (r"nfnet", "nfnet"),
        (r"xception", "xception"),
        (r"rexnet", "rexnet"),
        (r"hgnet", "hgnet"),
    )
)
_ORIGINS = re.compile(r"^((test|tf|tv|gluon|legacy|adv|ens|ig|swsl|ssl|dm|jx)_)+")


def parse(name: str) -> Architecture:
    """What is known of timm's architecture of that name; :func:`gnnperf.zoo.build` cannot write it.

    Raises:
        ModelFileError: no model of timm can have such a name.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ModelFileError(f"{PREFIX}/{name}: a model name as timm.list_models() gives it has to follow the slash")
    return Architecture(f"{PREFIX}/{name}", _family(name), _refuse, note="graph from scripts/export_timm_graphs.py")


def _family(name: str) -> str:
    """By its kin; a name that has none stands for itself, without sizes: ``starnet_s3`` -> ``starnet``."""
    name = _ORIGINS.sub("", name)
    for pattern, family in _FAMILIES:
        if pattern.search(name):
            return family
    return re.match(r"[a-z]+", name)[0]


def _refuse(builder: object, image: object, classes: object) -> NoReturn:
    raise ModelFileError("timm's architectures are not part of the zoo: export them with torch.onnx.export")
