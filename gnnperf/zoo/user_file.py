"""Networks of a user's own files, ``file/<name>-<graph key>``: known by name, not written here.

A file is a family of its own. The key tells files of the same name apart; the graphs lie beside the measurements.
"""

from __future__ import annotations

import re
from typing import NoReturn

from gnnperf.errors import ModelFileError
from gnnperf.zoo.architecture import Architecture

PREFIX = "file"
_FORM = re.compile(r"(?P<name>[a-z0-9_.]+)-[0-9a-f]{16}")


def spec_of_file(name: str, graph_key: str) -> str:
    """The specification that stands for a file.

    Args:
        name: of the file, in any form.
        graph_key: of its structure, as :func:`gnnperf.datasets.graph_store.graph_key` gives it.
    """
    return f"{PREFIX}/{re.sub(r'[^a-z0-9_.]+', '_', name.lower()) or 'model'}-{graph_key}"


def is_file(spec: str) -> bool:
    """Whether a specification stands for a file."""
    return spec.startswith(f"{PREFIX}/")


def parse(encoding: str) -> Architecture:
    """What is known of a user's file; :func:`gnnperf.zoo.build` cannot write it.

    Raises:
        ModelFileError: the specification is not of the form above.
    """
    match = _FORM.fullmatch(encoding)
    if match is None:
        raise ModelFileError(f"{PREFIX}/{encoding}: a name, a dash and the 16 digits of a graph key have to follow")
    return Architecture(f"{PREFIX}/{encoding}", match["name"], _refuse, note="graph beside the measurements")


def _refuse(builder: object, image: object, classes: object) -> NoReturn:
    raise ModelFileError("a user's file is not part of the zoo: give the ONNX file itself")
