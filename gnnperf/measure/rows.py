"""The CSV that ``gnnperf measure`` writes: one line a timed configuration, appended whole.

Columns, in this order. ``gnnperf data import measured`` and ``gnnperf adapt --measurements`` read them; of a table that
was written by hand, ``model`` and ``latency_ms`` are enough, in any order, and the others take the defaults of
:class:`MeasuredRow`.

=================  =====================================================================================================
model              path of an ONNX file, as it was given, or a specification of the zoo (``resnet18@160``)
layer              name of the one operator that was timed by itself; empty for the whole network
batch              batch size
phase              ``inference``, or ``training`` for a whole step: forward, loss, backward and update
latency_ms         median time of the whole batch
spread_ms          standard deviation over the repeats, from their interquartile range (which outliers do not move)
repeats            how many times were kept
forward_ms         of a training step: its forward pass with the loss; empty otherwise
backward_ms        of a training step: its backward pass; empty otherwise
update_ms          of a training step: its optimizer; empty otherwise
stack              as in :class:`gnnperf.conditions.Stack`
framework_version  of that stack
precision          ``fp32``, ``fp16`` or ``fp64``
window             what the timed window includes, as in :class:`gnnperf.conditions.Window`
optimizer          update rule of a training step, as in :class:`gnnperf.conditions.Optimizer`; ``none`` for inference
device             a name of ``gnnperf devices``, or the YAML file that describes it, relative to the table's folder
threads            CPU threads that the framework was allowed
quiet              ``yes``, ``no`` where something else kept the processor busy, empty where that could not be told
quiet_note         what disturbed, in words
peak_memory_mb     most memory that a run held: on a GPU of the framework's allocator, on a CPU where it was asked for
energy_mj          energy of one run in millijoules; empty where the machine offers no counter
shapes             sizes that were given for free dimensions, as ``seq=256;x:1x3x64x64``
graph_key          the structure at batch 1, as :func:`gnnperf.datasets.graph_store.graph_key` names it
machine            key of the machine's description in the file beside the table (``mine.machines.json``)
measured_at        when, in UTC
=================  =====================================================================================================

An interrupted run leaves complete lines only: a line that was cut off is dropped when the table is opened again.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import NamedTuple

from gnnperf.conditions import Conditions, Optimizer, Phase, Precision, Stack, Window
from gnnperf.errors import DataError, ModelFileError
from gnnperf.zoo import describe
from gnnperf.zoo.user_file import spec_of_file


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """One line of the table; the module describes the fields."""

    model: str
    latency_ms: float
    layer: str = ""
    batch: int = 1
    phase: Phase = Phase.INFERENCE
    spread_ms: float = math.nan
    repeats: int = 0
    forward_ms: float = math.nan
    backward_ms: float = math.nan
    update_ms: float = math.nan
    stack: Stack = Stack.PYTORCH
    framework_version: str = ""
    precision: Precision = Precision.FP32
    window: Window = Window.DEVICE
    optimizer: Optimizer = Optimizer.NONE
    device: str = ""
    threads: int = 0
    quiet: bool | None = None
    quiet_note: str = ""
    peak_memory_mb: float = math.nan
    energy_mj: float = math.nan
    shapes: str = ""
    graph_key: str = ""
    machine: str = ""
    measured_at: str = ""

    @property
    def conditions(self) -> Conditions:
        """What a prediction to compare with is made for."""
        return Conditions(self.phase, self.precision, self.stack, self.window, self.optimizer)

    @property
    def spec(self) -> str:
        """How measurements of all sources call the network: as the zoo does, or by file or layer and graph key.

        Raises:
            DataError: a row of a file or a layer does not say its graph key.
        """
        is_file = names_file(self.model)
        if not self.layer and not is_file:
            return self.model
        if not self.graph_key:
            raise DataError(
                f"{self.model} is a file or has a layer, and a row written by hand holds no structure: let "
                "`gnnperf measure` write it, or give the name of a network of the zoo (`gnnperf adapt` reads files)"
            )
        name = Path(self.model).stem if is_file else self.model
        return spec_of_file(f"{name}.{self.layer}" if self.layer else name, self.graph_key)

    @property
    def key(self) -> RowKey:
        """What makes the row another one than its neighbours."""
        return RowKey(
            self.model, self.layer, self.batch, self.phase, self.stack, self.precision, self.window, self.optimizer,
            self.device, self.threads, self.shapes,
        )  # fmt: skip


def names_file(model: str) -> bool:
    """Whether a model is a file, which need not be here any more, rather than an architecture of the zoo."""
    if model.endswith(".onnx"):
        return True
    try:
        describe(model)
    except ModelFileError:
        return True
    return False


class RowKey(NamedTuple):
    """The configuration that a row holds the time of: a finished one is not measured again."""

    model: str
    layer: str
    batch: int
    phase: Phase
    stack: Stack
    precision: Precision
    window: Window
    optimizer: Optimizer
    device: str
    threads: int
    shapes: str


COLUMNS = (
    "model", "layer", "batch", "phase", "latency_ms", "spread_ms", "repeats", "forward_ms", "backward_ms", "update_ms",
    "stack", "framework_version", "precision", "window", "optimizer", "device", "threads", "quiet", "quiet_note",
    "peak_memory_mb", "energy_mj", "shapes", "graph_key", "machine", "measured_at",
)  # fmt: skip
_REQUIRED = ("model", "latency_ms")
_LEAST_MS, _MOST_MS = 1e-6, 1e9  # a nanosecond, eleven days
MAX_BATCH = 2**20
_ENUMS = {"phase": Phase, "stack": Stack, "precision": Precision, "window": Window, "optimizer": Optimizer}
_MEASURED_PHASES = (Phase.INFERENCE, Phase.TRAINING)
_DEFAULTS = {field.name: field.default for field in fields(MeasuredRow)}
_QUIET = {True: "yes", False: "no", None: ""}


def read_rows(path: str | Path) -> list[MeasuredRow]:
    """Every complete row of a table, in its order.

    Raises:
        DataError: the file is missing, lacks a required column, has an unknown one, or a value is invalid; the line is
            named.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is no text in UTF-8: give the CSV that `gnnperf measure` wrote") from None
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise DataError(f"{path} is no CSV: {error}") from None
    if not lines:
        raise DataError(f"{path} is empty: it needs a header with at least {' and '.join(_REQUIRED)}")
    header = [name.strip() for name in lines[0]]
    _check_header(header, path)
    rows = []
    for number, cells in enumerate(lines[1:], 2):
        if not any(cells):
            continue
        if len(cells) != len(header):
            raise DataError(f"{path}, line {number}: {len(cells)} values for {len(header)} columns")
        values = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
        rows.append(_parsed(values, f"{path}, line {number}"))
    return rows


def _check_header(header: list[str], path: Path) -> None:
    if missing := [name for name in _REQUIRED if name not in header]:
        raise DataError(f"{path}: column {missing[0]} is missing; its header has {', '.join(header) or 'nothing'}")
    if unknown := [name for name in header if name not in COLUMNS]:
        raise DataError(f"{path}: unknown column {unknown[0]!r}; known are {', '.join(COLUMNS)}")
    if len(set(header)) < len(header):
        raise DataError(f"{path}: a column is there twice")


def _parsed(values: dict[str, str], where: str) -> MeasuredRow:
    given = {name: _value(name, text, where) for name, text in values.items() if text}
    for name in _REQUIRED:
        if name not in given:
            raise DataError(f"{where}: {name} is empty")
    return MeasuredRow(**given)


def _value(name: str, text: str, where: str) -> object:
    if name in _ENUMS:
        allowed = _MEASURED_PHASES if name == "phase" else tuple(_ENUMS[name])
        if text not in allowed:
            raise DataError(f"{where}: {name} has to be one of {', '.join(allowed)}, not {text!r}")
        return _ENUMS[name](text)
    if name == "quiet":
        if text not in ("yes", "no"):
            raise DataError(f"{where}: quiet has to be yes, no or empty, not {text!r}")
        return text == "yes"
    default = _DEFAULTS[name]
    if isinstance(default, int) or name == "batch":
        least = 1 if name == "batch" else 0
        if not text.isascii() or not text.isdecimal() or len(text) > 9 or int(text) < least:
            raise DataError(f"{where}: {name} has to be a whole number from {least}, not {text!r}")
        if name == "batch" and int(text) > MAX_BATCH:
            raise DataError(f"{where}: batch is at most {MAX_BATCH:,}, not {text!r}")
        return int(text)
    if isinstance(default, float) or name == "latency_ms":
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or number < 0 or (name == "latency_ms" and number == 0):
            raise DataError(f"{where}: {name} has to be a positive number, not {text!r}")
        if name == "latency_ms" and not _LEAST_MS <= number <= _MOST_MS:
            raise DataError(f"{where}: {name} has to be {_LEAST_MS:g} to {_MOST_MS:g} milliseconds, not {text!r}")
        return number
    return text


class RowWriter:
    """Appends rows to a table, which it makes where there is none; each is on disk before :meth:`append` returns.

    Args:
        path: the table.
        repeat_busy: whether rows of a busy machine count as missing, so that they are measured again.

    Attributes:
        done: keys of the rows that were there already.

    Raises:
        DataError: the file is there and is no such table, or cannot be written.
    """

    def __init__(self, path: Path, *, repeat_busy: bool = False) -> None:
        self.path = path
        try:
            if _opened(path):
                self.done = {row.key for row in read_rows(path) if row.quiet is not False or not repeat_busy}
            else:
                self.done = set()
                self._write(COLUMNS)
        except OSError as error:
            raise DataError(f"cannot write {path}: {error.strerror}") from None

    def append(self, row: MeasuredRow) -> None:
        """Write one row.

        Raises:
            DataError: the disk is full, or the file cannot be written any more.
        """
        try:
            values = asdict(row)
            self._write([_text(values[name]) for name in COLUMNS])
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {error.strerror}") from None
        self.done.add(row.key)

    def _write(self, cells: Sequence[str]) -> None:
        with self.path.open("ab", buffering=0) as stream:
            stream.write(_line(cells))
            os.fsync(stream.fileno())


def _line(cells: Sequence[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()


def _opened(path: Path) -> bool:
    """Whether there is such a table; a last line that a power cut or a full disk left half-written is taken off.

    Raises:
        DataError: the file is something else, which is left as it is.
    """
    if not path.exists():
        return False
    content, header = path.read_bytes(), _line(COLUMNS)
    if not content.startswith(header) and not header.startswith(content):
        raise DataError(f"{path} was not written by `gnnperf measure`: choose another name")
    complete = content.rfind(b"\n") + 1
    if complete < len(content):
        with path.open("r+b") as stream:
            stream.truncate(complete)
    return complete > 0


def _text(value: object) -> str:
    if value is None or isinstance(value, bool):
        return _QUIET[value]
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return str(value)
