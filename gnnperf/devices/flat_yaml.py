"""Reading a YAML file of a stranger: one mapping of scalars, and nothing that YAML can do beyond that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from gnnperf.errors import DeviceError

MAX_FILE_BYTES = 64 * 1024


def read_flat_yaml(path: Path) -> dict[str, Any]:
    """The keys and values of a YAML file that holds one mapping of scalars.

    Anchors, tags and nesting are refused before anything is built from them.

    Raises:
        DeviceError: the file cannot be read, is larger than 64 KiB, or holds anything else.
    """
    try:
        if path.is_dir():
            raise DeviceError(f"{path} is a folder, a device file is expected")
        if path.is_fifo():
            raise DeviceError(f"{path} is a pipe, a device file is expected")
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise DeviceError(f"cannot read the device file {path}: {error.strerror or error}") from None
    except ValueError as error:  # a NUL byte in the path
        raise DeviceError(f"cannot read the device file {str(path)!r}: {error}") from None
    if len(content) > MAX_FILE_BYTES:
        raise DeviceError(f"{path} is larger than {MAX_FILE_BYTES // 1024} KiB: that is no device file")
    try:
        text = content.decode("utf-8-sig")
        _refuse_all_but_a_flat_mapping(text, path)
        return yaml.safe_load(text)
    except UnicodeDecodeError:
        raise DeviceError(f"{path} is no UTF-8 text: a device file is YAML") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}" if mark else ""
        raise DeviceError(f"{path}{where}: broken YAML, {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise DeviceError(f"{path}: broken YAML, {' '.join(str(error).split())}") from None


def _refuse_all_but_a_flat_mapping(text: str, path: Path) -> None:
    depth, documents, keys, is_key = 0, 0, set(), True
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = f"{path}, line {event.start_mark.line + 1}"
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise DeviceError(f"{line}: anchors and aliases (&, *) are not allowed in a device file")
        if getattr(event, "tag", None):
            raise DeviceError(f"{line}: tags ({event.tag}) are not allowed in a device file")
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise DeviceError(f"{line}: a second document begins (---), a device file describes one device")
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > 1 or not isinstance(event, yaml.MappingStartEvent):
                raise DeviceError(
                    f"{line}: a device file is a flat list of `key: value` lines, without lists or nesting"
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.ScalarEvent):
            if depth == 0:
                raise DeviceError(f"{line}: a device file is a flat list of `key: value` lines")
            if is_key and event.value in keys:
                raise DeviceError(f"{line}: {event.value} is given twice")
            if is_key:
                keys.add(event.value)
            is_key = not is_key
    if not keys:
        raise DeviceError(f"{path} is empty: `gnnperf devices template` writes an example")
