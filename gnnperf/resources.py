"""Where the files that belong to gnnperf lie: beside the package in a wheel, at the repository's root in a checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource(name: str) -> Path:
    """Path of a shipped file or folder, such as ``data/devices.csv`` or ``configs/base.yaml``.

    A wheel carries ``data/`` and ``configs/`` inside the package; an editable install finds them one level up.
    """
    inside = _PACKAGE / name
    return inside if inside.exists() else _PACKAGE.parent / name
