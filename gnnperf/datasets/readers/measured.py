"""Tables that ``gnnperf measure`` wrote: measurements of one's own, each table a source by itself.

A row of a training step gives three: the step, its forward pass and its backward pass. Rows that were taken while the
machine was busy are left out. Devices are those of ``gnnperf devices`` or, in rows as in the result, files that
describe one; networks are those of the zoo, or files and layers whose graphs lie beside the table.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd

from gnnperf.conditions import Optimizer, Phase
from gnnperf.datasets.graph_store import GraphStore
from gnnperf.datasets.schema import Kind, measurements
from gnnperf.devices import get_device
from gnnperf.errors import DataError, DeviceError
from gnnperf.measure.rows import COLUMNS, MeasuredRow, read_rows
from gnnperf.zoo.layers import is_single_layer

NAME = "measured"
_DEVICE_FILES = (".yaml", ".yml")


def tables(path: Path) -> list[Path]:
    """The table itself, or those in a folder.

    Raises:
        DataError: there is none.
    """
    if path.is_file():
        return [path]
    found = [table for table in sorted(path.glob("*.csv")) if _is_table(table)]
    if not found:
        raise DataError(f"{path} holds no table of `gnnperf measure`")
    return found


def source_name(table: Path) -> str:
    """What rows of a table name as their source."""
    return f"{NAME}-{table.stem}"


def read(table: Path) -> tuple[pd.DataFrame, int]:
    """Rows of one table, and how many of its lines were left out because the machine was busy.

    Raises:
        DataError: the table is missing or invalid, a row names no device or an unknown one, or the machine was busy
            during all rows.
    """
    lines = read_rows(table)
    rows = [row for row in lines if row.quiet is not False]
    if not lines:
        raise DataError(f"{table} holds no measurements yet")
    if not rows:
        raise DataError(
            f"{table}: the machine was busy during all {len(lines)} measurements; measure again with --repeat-busy, or "
            "empty the column quiet to take them all the same"
        )
    devices = {name: _device(name, table) for name in {row.device for row in rows}}
    rows = [part for row in rows for part in _with_parts(row)]
    try:
        specs = [row.spec for row in rows]
    except DataError as error:
        raise DataError(f"{table}: {error}") from None
    frame = measurements(
        source=source_name(table),
        model=specs,
        kind=[(Kind.LAYER if row.layer or is_single_layer(row.model) else Kind.MODEL).value for row in rows],
        device=[devices[row.device] for row in rows],
        stack=[row.stack.value for row in rows],
        framework_version=[row.framework_version for row in rows],
        precision=[row.precision.value for row in rows],
        batch=[row.batch for row in rows],
        phase=[row.phase.value for row in rows],
        window=[row.window.value for row in rows],
        optimizer=[row.optimizer.value for row in rows],
        latency_ms=[row.latency_ms for row in rows],
        spread_ms=[row.spread_ms for row in rows],
        repeats=[row.repeats for row in rows],
        citation=table.name,
    )
    return frame, sum(row.quiet is False for row in lines)


def graphs_of(table: Path) -> GraphStore:
    """Graphs of the files and layers in a table, by specification; none where it has only networks of the zoo.

    Raises:
        DataError: the store is damaged.
    """
    path = table.with_name(f"{table.stem}.graphs.npz")
    return GraphStore.load(path) if path.exists() else GraphStore()


def _with_parts(row: MeasuredRow) -> list[MeasuredRow]:
    rows = [row]
    for phase, latency_ms in ((Phase.FORWARD, row.forward_ms), (Phase.BACKWARD, row.backward_ms)):
        if row.phase == Phase.TRAINING and latency_ms > 0:
            part = replace(row, phase=phase, latency_ms=latency_ms, spread_ms=math.nan, optimizer=Optimizer.NONE)
            rows.append(part)
    return rows


def _device(name: str, table: Path) -> str:
    """A slug, or the path of a description."""
    if not name:
        raise DataError(
            f"{table}: a row names no device; write what the machine is into its column device, a name of "
            "`gnnperf devices` or the YAML file of a description"
        )
    is_file = name.lower().endswith(_DEVICE_FILES)
    path = (table.parent / name).resolve()
    try:
        device = get_device(path if is_file else name)
    except DeviceError as error:
        raise DataError(f"{table}: {error}") from None
    return str(path) if is_file else device.slug


def _is_table(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8") as stream:
            return stream.readline().strip() == ",".join(COLUMNS)
    except (OSError, UnicodeDecodeError):
        return False
