"""The table of measurements that a device is adapted to, as graphs and conditions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gnnperf.conditions import Conditions
from gnnperf.datasets.graph_store import GraphStore
from gnnperf.devices import Device, get_device
from gnnperf.errors import DataError, DeviceError, ModelFileError
from gnnperf.graph import GraphArrays
from gnnperf.measure.models import Network
from gnnperf.measure.rows import MeasuredRow, read_rows

MOST_ROWS = 10_000
"""Beyond, factors learn nothing more and the fit takes minutes."""


@dataclass(frozen=True)
class DeviceMeasurements:
    """n measured latencies of whole networks on one device.

    Attributes:
        models: names of the networks.
        graphs: each at its batch.
        conditions: of each.
        latency_ms: ``[n]``.
        left_out: rows that were not taken: single layers, and what was timed on a busy machine.
    """

    models: list[str]
    graphs: list[GraphArrays]
    conditions: list[Conditions]
    latency_ms: np.ndarray
    left_out: int

    def __len__(self) -> int:
        return len(self.models)


def read_measurements(path: Path, device: Device) -> DeviceMeasurements:
    """Read a table of ``gnnperf measure``, or one written by hand (:mod:`gnnperf.measure.rows`).

    Graphs come from the store beside the table where it has them, else from the ONNX files, whose paths may be relative
    to the table, and the zoo.

    Raises:
        DataError: the table is invalid or holds no whole network, a row is of another device, or a network cannot be
            read; the row is named.
    """
    rows = read_rows(path)
    taken = [(number, row) for number, row in enumerate(rows, 1) if not row.layer and row.quiet is not False]
    if not taken:
        raise DataError(
            f"{path} holds no measurement of a whole network on a quiet machine, so nothing to adapt to: measure again "
            "with --repeat-busy, or empty the column quiet to take busy rows all the same"
        )
    if len(taken) > MOST_ROWS:
        raise DataError(
            f"{path} holds {len(taken):,} measurements; a device is adapted to at most {MOST_ROWS:,}, and with so many "
            "`gnnperf data import measured` and `gnnperf train` do better"
        )
    kept = path.with_name(f"{path.stem}.graphs.npz")
    store = GraphStore.load(kept) if kept.exists() else GraphStore()
    structures: dict[tuple[str, str], GraphArrays] = {}
    graphs = []
    for number, row in taken:
        where = f"{path}, row {number}"
        _refuse_another_device(row, device, path, where)
        key = (row.model, row.shapes)
        if key not in structures:
            structures[key] = _structure(row, store, path, where)
        graphs.append(structures[key].at_batch(row.batch))
    return DeviceMeasurements(
        models=[row.model for _, row in taken],
        graphs=graphs,
        conditions=[row.conditions for _, row in taken],
        latency_ms=np.array([row.latency_ms for _, row in taken]),
        left_out=len(rows) - len(taken),
    )


def _refuse_another_device(row: MeasuredRow, device: Device, table: Path, where: str) -> None:
    if not row.device:
        return
    file = table.parent / row.device
    try:
        measured = get_device(file if file.is_file() else row.device)
    except DeviceError as error:
        raise DataError(f"{where}: {error}") from None
    if measured.slug not in (device.slug, device.base) and measured.base != device.slug:
        raise DataError(f"{where} was measured on {measured.name}, not on {device.name}: give the table of one device")


def _structure(row: MeasuredRow, store: GraphStore, table: Path, where: str) -> GraphArrays:
    """The row's graph at batch 1."""
    if row.graph_key in store:
        return store[row.graph_key]
    beside = table.parent / row.model
    name = str(beside) if row.model.endswith(".onnx") and not Path(row.model).exists() else row.model
    try:
        return Network(name, *_sizes(row.shapes)).structure
    except ModelFileError as error:
        raise DataError(f"{where}: {error}") from None


def _sizes(shapes: str) -> tuple[dict[str, int], dict[str, tuple[int, ...]]]:
    """``"seq=256;x:1x3x64x64"`` -> dims and input shapes.

    Raises:
        ModelFileError: the text is no such list.
    """
    dims, input_shapes = {}, {}
    for part in filter(None, shapes.split(";")):
        try:
            if ":" in part:
                name, _, sizes = part.rpartition(":")
                input_shapes[name] = tuple(int(size) for size in sizes.split("x"))
            else:
                name, _, size = part.rpartition("=")
                dims[name] = int(size)
        except ValueError:
            raise ModelFileError(f"{part!r} in the column shapes is neither NAME=N nor NAME:AxBxC") from None
    return dims, input_shapes
