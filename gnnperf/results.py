"""Predictions of many files in one table that grows file by file, and that a killed run goes on with.

CSV and JSONL are appended to; Parquet, which cannot be, is made of such a file when all is done. Beside the table lies
``NAME.run.json``: what was asked for. A table is gone on with only where the same is asked for again.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from gnnperf.errors import ResultsError
from gnnperf.files import lock, write_whole
from gnnperf.prediction import ROW_FIELDS

COLUMNS = ("file", *ROW_FIELDS, "error")
SUFFIXES = (".csv", ".jsonl", ".parquet")


class ResultsFile:
    """A table of predictions that is open for more.

    Use it as a context manager: a Parquet file is made when the block ends without an error.

    Args:
        path: the table; its suffix, of :data:`SUFFIXES`, is its format.
        run: what was asked for, as plain data.
        rows_per_file: how many rows a file has of which all goes well.
        overwrite: start anew, whatever is there.

    Raises:
        ResultsError: the format is unknown, the path cannot be written, another run is writing to it, or it holds what
            this run does not go on with.
    """

    def __init__(self, path: Path, run: dict[str, Any], rows_per_file: int, overwrite: bool = False) -> None:
        self.path = Path(path)
        self.format = self.path.suffix.lower()
        if self.format not in SUFFIXES:
            raise ResultsError(f"'{path}' has to end in {', '.join(SUFFIXES)}")
        if self.format == ".parquet":
            _require_pyarrow()
        self.finished: set[str] = set()
        """Files whose rows are all there."""
        self.failed: set[str] = set()
        """Those of them that could not be predicted."""
        self._rows_per_file = rows_per_file
        self._about = self.path.with_name(f"{self.path.name}.run.json")
        # A Parquet file is unreadable until it is complete: its rows gather in a file that can be appended to.
        self._lines = self.path.with_name(f".{self.path.name}.rows.jsonl") if self.format == ".parquet" else self.path
        try:
            self._stream = self._open(self._check_run(run, overwrite), overwrite)
        except OSError as error:
            raise ResultsError(f"'{path}' cannot be written: {error.strerror or error}") from None

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            os.fsync(self._stream.fileno())
        finally:
            self._stream.close()
        if kind is None and self.format == ".parquet":
            self._make_parquet()
            self._lines.unlink()

    def append(self, file: str | Path, rows: Iterable[dict[str, Any]], error: str | None) -> None:
        """Add the rows of one file in one piece; ``error`` says why there are not all of them.

        Raises:
            ResultsError: the disk is full, or the file cannot be written any more.
        """
        name = file_key(file)
        lines = [self._line({"file": name, **row, "error": None}) for row in rows]
        if error is not None:
            lines.append(self._line({"file": name, "error": error}))
        try:
            self._stream.write(b"".join(lines))
            self._stream.flush()
        except OSError as failure:
            raise ResultsError(f"'{self.path}' cannot be written: {failure.strerror or failure}") from None
        self.finished.add(name)
        if error is not None:
            self.failed.add(name)

    def _check_run(self, run: dict[str, Any], overwrite: bool) -> bytes | None:
        """What has to be written beside the table; None where it is there already."""
        run = json.loads(json.dumps(run))
        # A run that has just begun has an empty file, and is found by its lock.
        exists = any(path.exists() and path.stat().st_size for path in (self.path, self._lines))
        if exists and not overwrite:
            try:
                before = json.loads(self._about.read_text(encoding="utf-8"))
            except FileNotFoundError:
                raise ResultsError(
                    f"'{self.path}' is there, and no run that could go on: give another name, or --overwrite"
                ) from None
            except ValueError:
                before = {}
            differing = [name for name in run if run[name] != before.get(name)] if isinstance(before, dict) else ["all"]
            if differing:
                raise ResultsError(
                    f"'{self.path}' was made with other options ({', '.join(differing)}): "
                    "give another name, or --overwrite"
                )
            return None
        return (json.dumps(run, indent=2) + "\n").encode()

    def _open(self, about: bytes | None, overwrite: bool) -> BinaryIO:
        if self.format == ".parquet" and self.path.exists() and not self._lines.exists() and not overwrite:
            self._back_from_parquet()
        stream = self._lines.open("ab+")
        if not lock(stream):
            stream.close()
            raise ResultsError(f"another run is writing '{self.path}'")
        if about is not None:  # not earlier: it would describe another run's table
            write_whole(self._about, about)
        if overwrite:
            stream.truncate(0)
        stream.seek(0)
        stream.truncate(self._read_finished(stream))
        stream.seek(0, os.SEEK_END)
        if self.format == ".csv" and not stream.tell():
            stream.write(_csv_line(COLUMNS))
            stream.flush()
        return stream

    def _read_finished(self, stream: BinaryIO) -> int:
        """Note which files are complete; where the part of the table that holds up ends.

        What comes after it, half of a line or half of a file's rows, is predicted again.
        """
        end = position = count = 0
        current = None
        for line in stream:
            position += len(line)
            if self.format == ".csv" and line == _csv_line(COLUMNS) and not end:
                end = position
                continue
            row = self._parse(line)
            if row is None:
                break
            count = count + 1 if row["file"] == current else 1
            current = row["file"]
            if row["error"] or count == self._rows_per_file:
                self.finished.add(current)
                if row["error"]:
                    self.failed.add(current)
                end = position
        return end

    def _parse(self, line: bytes) -> dict[str, str] | None:
        """File and error of a line; None where it is none of ours."""
        if not line.endswith(b"\n"):
            return None
        try:
            text = line.decode("utf-8")
            if self.format == ".csv":
                (cells,) = csv.reader([text], strict=True)
                row = dict(zip(COLUMNS, cells, strict=True))
            else:
                row = json.loads(text)
            return {"file": row["file"], "error": row["error"]}
        except (ValueError, KeyError, TypeError, csv.Error):
            return None

    def _line(self, row: dict[str, Any]) -> bytes:
        if self.format == ".csv":
            return _csv_line([_one_line(row.get(name)) for name in COLUMNS])
        return (json.dumps(row) + "\n").encode()

    def _rows(self) -> Iterator[dict[str, Any]]:
        with self._lines.open(encoding="utf-8") as stream:
            yield from map(json.loads, stream)

    def _make_parquet(self) -> None:
        import pyarrow
        from pyarrow import parquet

        partial = self.path.with_name(f".{self.path.name}.partial")
        rows = [{name: _storable(row.get(name)) for name in COLUMNS} for row in self._rows()]
        try:
            parquet.write_table(pyarrow.Table.from_pylist(rows, _schema()), partial)
            partial.replace(self.path)
        except OSError as error:
            raise ResultsError(f"'{self.path}' cannot be written: {error.strerror or error}") from None
        finally:
            partial.unlink(missing_ok=True)

    def _back_from_parquet(self) -> None:
        """Take up a complete table again, to which files were added."""
        import pyarrow
        from pyarrow import parquet

        try:
            rows = parquet.read_table(self.path).to_pylist()
        except (OSError, pyarrow.ArrowException) as error:
            raise ResultsError(f"'{self.path}' is damaged ({error}): give another name, or --overwrite") from None
        write_whole(self._lines, b"".join(map(self._line, rows)))


def file_key(file: str | Path) -> str:
    """A file's name as tables have it: in one line, and in UTF-8 whatever the file system says."""
    return _one_line(os.fsencode(file).decode("utf-8", "backslashreplace"))


def _one_line(value: Any) -> Any:
    return value.replace("\r", "\\r").replace("\n", "\\n") if isinstance(value, str) else value


def _storable(value: Any) -> Any:
    """The value; a count beyond 64 bits, which only a broken file has, is as large as they go."""
    return min(value, 2**63 - 1) if isinstance(value, int) else value


def _csv_line(cells: Iterable[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _require_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ModuleNotFoundError:
        raise ResultsError("Parquet needs pyarrow: pip install pyarrow, or choose .csv or .jsonl") from None


def _schema():
    """Column types from those of the fields, so that an empty or failed table has the same."""
    import pyarrow

    integers = {"batch", "macs", "parameters"} | {name for name in COLUMNS if name.endswith("_bytes")}
    floats = {name for name in COLUMNS if name.endswith(("_ms", "_per_s"))} | {"distance"}
    types = {
        **dict.fromkeys(integers, pyarrow.int64()),
        **dict.fromkeys(floats, pyarrow.float64()),
        "memory_fits": pyarrow.bool_(),
    }
    return pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in COLUMNS])
