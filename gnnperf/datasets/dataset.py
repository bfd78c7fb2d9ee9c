"""A folder that holds measurements and the graphs they refer to."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

import pandas as pd

from gnnperf.datasets.graph_store import GraphStore
from gnnperf.datasets.schema import COLUMNS, DTYPES, concatenate, typed
from gnnperf.errors import DataError

MEASUREMENTS_FILE = "measurements.parquet"
GRAPHS_FILE = "graphs.npz"


class Dataset:
    """Measurements (``frame``, the columns of :mod:`gnnperf.datasets.schema`) and their graphs (``graphs``).

    On disk a table is always complete: new rows go to a file beside it that replaces it in one step, and graphs are
    written before the rows that refer to them.

    Args:
        folder: where table and graphs are kept; None for a dataset that lives in memory alone.
        frame: the measurements.
        graphs: their graphs; by default those of the folder, loaded when first asked for.
    """

    def __init__(self, folder: Path | None, frame: pd.DataFrame, graphs: GraphStore | None = None) -> None:
        self.folder = folder
        self.frame = frame
        self._graphs = graphs

    @classmethod
    def open(cls, folder: str | Path) -> Dataset:
        """Open an existing folder.

        Raises:
            DataError: the folder has no table, or the table is damaged.
        """
        folder = Path(folder)
        path = folder / MEASUREMENTS_FILE
        if not path.is_file():
            raise DataError(f"no measurements in {folder}: run `gnnperf data import` first, or name another folder")
        try:
            frame = pd.read_parquet(path, columns=list(COLUMNS))
        except Exception as error:  # pyarrow raises OSError, ArrowException or KeyError, by what is damaged
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DataError(f"the table {path} is damaged ({reason}); import the sources again") from None
        return cls(folder, typed(frame))

    @classmethod
    def open_or_create(cls, folder: str | Path) -> Dataset:
        """Open a folder; an absent or empty one gives a dataset without rows."""
        folder = Path(folder)
        if (folder / MEASUREMENTS_FILE).exists():
            return cls.open(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot make the folder {folder}: {error.strerror}") from None
        return cls(folder, concatenate([]))

    @cached_property
    def graphs(self) -> GraphStore:
        """The graphs, by the table's ``graph_key``; loaded when first asked for.

        Raises:
            DataError: the folder's graph store is missing or damaged.
        """
        if self._graphs is not None:
            return self._graphs
        path = self.folder / GRAPHS_FILE
        return GraphStore.load(path) if path.exists() or len(self.frame) else GraphStore()

    def replace_source(self, source: str, rows: pd.DataFrame) -> None:
        """Put ``rows`` in the place of everything that ``source`` gave before, and write table and graphs.

        The graphs of ``rows`` have to be in :attr:`graphs` already.

        Raises:
            DataError: a row's graph is missing, the folder cannot be written, or there is none.
        """
        if self.folder is None:
            raise DataError("this dataset is in memory alone; make one with Dataset.open_or_create to import sources")
        missing = [key for key in rows["graph_key"].cat.categories if key not in self.graphs]
        if missing:
            raise DataError(f"{len(missing)} graphs of {source} were never built, the first is {missing[0]!r}")
        frame = typed(concatenate([self.frame[self.frame["source"] != source], rows]))
        try:
            self.graphs.save(self.folder / GRAPHS_FILE)
            self._write(frame)
        except OSError as error:
            raise DataError(f"cannot write to {self.folder}: {error.strerror or error}") from None
        self.frame = frame

    def _write(self, frame: pd.DataFrame) -> None:
        path = self.folder / MEASUREMENTS_FILE
        temporary = path.with_name(path.name + ".partial")
        try:
            frame.to_parquet(temporary, compression="zstd", index=False)
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        return f"Dataset({str(self.folder or 'in memory')!r}, {len(self.frame)} rows, {len(DTYPES)} columns)"
