"""Files that are complete or not there at all, and files that one process at a time writes."""

import errno
import os
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; one of that name is replaced only once the new content is on disk.

    A link stays one: what it points to is written.

    Raises:
        OSError: the folder cannot be written, the disk is full, or the name is that of a device or pipe. What was there
            is then as it was.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "there is something of that name that is no file", str(path))
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def lock(stream: BinaryIO) -> bool:
    """Keep a file to this process until the stream is closed; False where another process has it.

    Not known on Windows, where every process gets it.
    """
    try:
        import fcntl
    except ModuleNotFoundError:
        return True
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
