"""Predictions that took a fit, kept as tables that people can read too."""

from __future__ import annotations

import hashlib
import json
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd

from gnnperf.errors import DataError
from gnnperf.files import write_whole

_COLUMNS = ["model", "device", "stack", "phase", "optimizer", "batch", "latency_ms", "source", "citation"]


class PredictionCache:
    """A CSV for each fit, and a JSON beside it that says which code, training rows and predicted rows it belongs to.

    Args:
        folder: where they are; made when the first is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, name: str, identity: str) -> np.ndarray | None:
        """``[rows]`` ms kept under this name; None where there are none, those of another identity, or damaged ones."""
        try:
            content = self._table(name).read_bytes()
            description = json.loads(self._description(name).read_text(encoding="utf-8"))
            if description != {"identity": identity, "table": _digest(content)}:
                return None
            return pd.read_csv(BytesIO(content), float_precision="round_trip")["predicted_ms"].to_numpy(float)
        except (OSError, ValueError):
            return None

    def keep(self, name: str, identity: str, rows: pd.DataFrame, predicted_ms: np.ndarray) -> None:
        """Write a table of ``rows`` and their predictions, in the place of an older one of the name.

        Raises:
            DataError: the folder cannot be written.
        """
        content = rows[_COLUMNS].assign(predicted_ms=predicted_ms).to_csv(index=False).encode()
        description = json.dumps({"identity": identity, "table": _digest(content)}).encode()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(self._table(name), content)
            write_whole(self._description(name), description)
        except OSError as error:
            raise DataError(f"cannot write to {self._folder}: {error.strerror or error}") from None

    def _table(self, name: str) -> Path:
        return self._folder / f"{name}.csv"

    def _description(self, name: str) -> Path:
        return self._folder / f"{name}.json"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
