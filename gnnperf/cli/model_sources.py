"""What ``gnnperf predict`` is given: ONNX files, folders of them, and functions that make PyTorch modules."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from gnnperf.errors import ModelFileError

if TYPE_CHECKING:
    from gnnperf.many import Source

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # a drive letter, too, but for the backslash after it


def expand_sources(arguments: Iterable[Path]) -> dict[str, Source]:
    """What each argument stands for, by the name to show; a folder stands for all ``.onnx`` files below it, sorted.

    Nothing is read or imported here; what cannot be found is said when it is predicted.
    """
    sources: dict[str, Source] = {}
    for argument in arguments:
        if argument.is_dir():
            found = sorted(path for path in argument.rglob("*.onnx") if path.is_file())
            sources |= {str(path): path for path in found} or {str(argument): partial(_refuse_empty, argument)}
        elif _FUNCTION.fullmatch(str(argument)) and not argument.exists():
            sources[str(argument)] = partial(_export, str(argument))
        else:
            sources[str(argument)] = argument
    return sources


def _refuse_empty(folder: Path) -> NoReturn:
    raise ModelFileError(f"the folder '{folder}' holds no .onnx file")


def _export(spec: str):
    from gnnperf.from_torch import export_module, load_module

    model = export_module(*load_module(spec))
    model.graph.name = spec.partition(":")[2]
    return model
