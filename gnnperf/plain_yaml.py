"""YAML of moderate size without anchors and tags: nothing that can grow while it is read, or make objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

MAX_FILE_BYTES = 64 * 1024


def read_plain_yaml(path: Path) -> Any:
    """Content of a YAML file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no regular file, is larger than 64 KiB, is no YAML, or has anchors, aliases or tags: a few
            lines of aliases that are merged into each other (``<<``) can fill any memory.
    """
    if path.exists() and not path.is_file():
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"it is larger than {MAX_FILE_BYTES // 1024} KiB")
    text = content.decode("utf-8-sig")
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) or getattr(event, "tag", None):
                raise ValueError(
                    f"line {event.start_mark.line + 1}: anchors, aliases and tags (&, *, !) are not allowed"
                )
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
