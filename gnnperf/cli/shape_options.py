"""Parse what the user says about input sizes: ``--dim NAME=VALUE`` and ``--input-shape NAME:1x3x224x224``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

DimOption = Annotated[
    list[str] | None,
    typer.Option(
        "--dim",
        metavar="NAME=N",
        help="Size of a free dimension; 'x[2]' names the unnamed third dimension of input x. May be repeated.",
    ),
]
InputShapeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input-shape",
        metavar="NAME:1x3x224x224",
        help="Whole shape of an input. May be repeated.",
    ),
]


def parse_dims(options: Iterable[str] | None) -> dict[str, int]:
    """``["height=320"]`` -> ``{"height": 320}``.

    Raises:
        typer.BadParameter: an option is not ``NAME=N``, or names a dimension twice.
    """
    dims: dict[str, int] = {}
    for option in options or ():
        name, separator, size = option.rpartition("=")
        if not separator or not name or not _is_size(size):
            raise typer.BadParameter(f"'{option}' is not NAME=N with a positive whole number, such as height=320")
        if name in dims:
            raise typer.BadParameter(f"dimension '{name}' is given twice")
        dims[name] = int(size)
    return dims


def parse_input_shapes(options: Iterable[str] | None) -> dict[str, tuple[int, ...]]:
    """``["x:1x3x224x224"]`` -> ``{"x": (1, 3, 224, 224)}``; input names may hold colons.

    Raises:
        typer.BadParameter: an option is not ``NAME:AxBxC``, or names an input twice.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for option in options or ():
        name, separator, shape = option.rpartition(":")
        sizes = shape.lower().replace(",", "x").split("x")
        if not separator or not name or not all(map(_is_size, sizes)):
            raise typer.BadParameter(f"'{option}' is not NAME:SHAPE with positive sizes, such as x:1x3x224x224")
        if name in shapes:
            raise typer.BadParameter(f"input '{name}' is given twice")
        shapes[name] = tuple(map(int, sizes))
    return shapes


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18 and int(text) > 0
