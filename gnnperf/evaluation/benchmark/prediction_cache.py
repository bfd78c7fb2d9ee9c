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
    """A CSV for each fit, and a JSON beside it that says which fit and which predicted rows it belongs to.

    Args:
        folder: where they are; made when the first is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, name: str, identity: str, rows: pd.DataFrame) -> np.ndarray | None:
        """``[rows]`` ms kept under this name; None where there are none, those of another fit or rows, or damaged ones.

        Args:
            name: of the files.
            identity: digest of what was fitted.
            rows: that are predicted.
        """
        try:
            content = self._table(name).read_bytes()
            description = json.loads(self._description(name).read_text(encoding="utf-8"))
            if description != {"fit": identity, "rows": _rows_digest(rows), "table": _digest(content)}:
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
        digests = {"fit": identity, "rows": _rows_digest(rows), "table": _digest(content)}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(self._table(name), content)
            write_whole(self._description(name), json.dumps(digests).encode())
        except OSError as error:
            raise DataError(f"cannot write to {self._folder}: {error.strerror or error}") from None

    def _table(self, name: str) -> Path:
        return self._folder / f"{name}.csv"

    def _description(self, name: str) -> Path:
        return self._folder / f"{name}.json"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _rows_digest(rows: pd.DataFrame) -> str:
    return _digest(pd.util.hash_pandas_object(rows, index=False).to_numpy().tobytes())
