"""Files that are complete or not there at all."""

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; one of that name is replaced only once the new content is on disk.

    Raises:
        OSError: the folder cannot be written, or the disk is full. An older file is then as it was.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
