"""Are a source's files the ones that the readers were written for?"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from gnnperf.datasets.readers import Source
from gnnperf.errors import DataError
from gnnperf.resources import resource

_DIGITS = 16  # of the SHA-256: chance damage is what this is against


def checksum(path: Path) -> str:
    """First 16 hexadecimal digits of a file's SHA-256.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:_DIGITS]
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None


def source_files(source: Source, folder: Path) -> dict[str, str]:
    """Checksum of every file that the reader takes, by its path relative to ``folder``."""
    paths = sorted({path for pattern in source.files for path in folder.glob(pattern)})
    return {path.relative_to(folder).as_posix(): checksum(path) for path in paths}


def verify_files(source: Source, folder: Path) -> None:
    """Compare the files in ``folder`` with ``data/sources.json``.

    Raises:
        DataError: a file is missing, changed, or not among those of the version that is known; the first is named.
    """
    expected = json.loads(resource("data/sources.json").read_text()).get(source.name)
    if expected is None:  # carried with gnnperf itself
        return
    found = source_files(source, folder)
    problems = [f"{name} is missing" for name in expected if name not in found]
    problems += [f"{name} differs" for name in expected if name in found and found[name] != expected[name]]
    problems += [f"{name} is not part of it" for name in found if name not in expected]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise DataError(
            f"{folder} is not {source.name} as of {source.upstream}: {problems[0]}{more}; "
            "give --no-verify to read another version all the same"
        )
