"""Parse what the user says about batch sizes: ``--batch 1,8,32``."""

from __future__ import annotations

import typer


def parse_batches(text: str) -> list[int]:
    """``"1,8,8"`` -> ``[1, 8]``.

    Raises:
        typer.BadParameter: it is no list of positive whole numbers.
    """
    parts = text.split(",")
    if not all(part.strip().isascii() and part.strip().isdecimal() and len(part.strip()) <= 9 for part in parts):
        raise typer.BadParameter(f"{text!r} is no list of batch sizes such as 1,8,32", param_hint="--batch")
    batches = [int(part) for part in parts]
    if min(batches) < 1:
        raise typer.BadParameter("a batch size is at least 1", param_hint="--batch")
    return list(dict.fromkeys(batches))
