"""Every graph that the measurements refer to, each structure once, in one compact file.

All graphs are kept at batch 1 (:meth:`GraphArrays.at_batch` gives the others). Networks of one search space are built
from the same few operators, so operator rows are stored once and graphs refer to them by number: 25,000 networks of
search spaces take a few megabytes, and load in a second.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from gnnperf.errors import DataError
from gnnperf.graph.arrays import NODE_FIELDS, GraphArrays

_FORMAT = 1
_KEY_BYTES = 8
_MAX_BYTES = 2**29  # unpacked; three times what all public sources take
# What numpy and zipfile raise on archives that are none, were cut, or claim sizes and features that they do not have.
_DAMAGE = (
    AttributeError, EOFError, MemoryError, NotImplementedError, RuntimeError, TypeError, ValueError, struct.error,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def graph_key(arrays: GraphArrays) -> str:
    """16 hexadecimal digits that name a structure at batch 1: equal graphs, equal keys."""
    return _digest(*_packed(arrays))


def _packed(arrays: GraphArrays) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What is stored of a graph: operator rows (class, then fields), edges, edge bytes, bytes in and out; float32."""
    if arrays.batch != 1:
        raise DataError(f"a graph store holds graphs at batch 1, not {arrays.batch}")
    rows = np.empty((arrays.num_nodes, 1 + len(NODE_FIELDS)), np.float32)
    rows[:, 0] = arrays.op_class
    rows[:, 1:] = arrays.node
    return (
        rows,
        np.ascontiguousarray(arrays.edge_index, np.int32),
        np.asarray(arrays.edge_bytes, np.float32),
        np.array([arrays.input_bytes, arrays.output_bytes], np.float32),
    )


def _digest(*parts: np.ndarray) -> str:
    digest = hashlib.blake2b(digest_size=_KEY_BYTES)
    for part in parts:
        digest.update(part.tobytes())
    return digest.hexdigest()


class _Pieces:
    """Arrays of different lengths: one long array with the ends of the pieces, and what was appended since."""

    def __init__(self, joined: np.ndarray, lengths: np.ndarray) -> None:
        self._joined = joined
        self._ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        self._appended: list[np.ndarray] = []

    def __getitem__(self, position: int) -> np.ndarray:
        stored = len(self._ends) - 1
        if position >= stored:
            return self._appended[position - stored]
        return self._joined[self._ends[position] : self._ends[position + 1]]

    def append(self, piece: np.ndarray) -> None:
        self._appended.append(piece)

    def lengths(self) -> np.ndarray:
        return np.concatenate([np.diff(self._ends), [len(piece) for piece in self._appended]]).astype(np.int32)

    def joined(self) -> np.ndarray:
        return np.concatenate([self._joined, *self._appended])


def _no_pieces(*shape: int, dtype: type) -> _Pieces:
    return _Pieces(np.zeros((0, *shape), dtype), np.zeros(0, int))


class GraphStore:
    """Graphs by key. Behaves like a read-only mapping ``key -> GraphArrays``, plus :meth:`add`.

    Quantities are kept in float32, a relative error below 6e-8.

    Attributes:
        names: key by specification, of graphs that no zoo can build again from one.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self._position: dict[str, int] = {}
        self._rows = np.zeros((0, 1 + len(NODE_FIELDS)), np.float32)  # operator rows, each once
        self._new_rows: list[np.ndarray] = []
        self._row_number: dict[bytes, int] | None = None  # made when the first graph is added
        self._nodes = _no_pieces(dtype=np.int32)  # a graph's operators as row numbers
        self._edges = _no_pieces(2, dtype=np.int32)  # [E, 2]
        self._edge_bytes = _no_pieces(dtype=np.float32)
        self._io_bytes = _no_pieces(dtype=np.float32)

    def __len__(self) -> int:
        return len(self._position)

    def __contains__(self, key: object) -> bool:
        return key in self._position

    def __iter__(self) -> Iterator[str]:
        return iter(self._position)

    def keys(self) -> Iterable[str]:
        """Keys of all graphs, in the order in which they came."""
        return self._position.keys()

    def __getitem__(self, key: str) -> GraphArrays:
        """The graph at batch 1.

        Raises:
            DataError: the store has no such graph.
        """
        try:
            rows, edges, edge_bytes, io_bytes = self._parts(self._position[key])
        except KeyError:
            raise DataError(f"the graph store has no graph {key!r}; import the source again") from None
        return GraphArrays(
            rows[:, 0].astype(np.int16),
            rows[:, 1:].astype(np.float64),
            edges,
            edge_bytes.astype(np.float64),
            float(io_bytes[0]),
            float(io_bytes[1]),
        )

    def _parts(self, position: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What :func:`_packed` gave for the graph."""
        return (
            self._row_table()[self._nodes[position]],
            np.ascontiguousarray(self._edges[position].T),
            self._edge_bytes[position],
            self._io_bytes[position],
        )

    def _row_table(self) -> np.ndarray:
        if self._new_rows:
            self._rows = np.concatenate([self._rows, np.stack(self._new_rows)])
            self._new_rows = []
        return self._rows

    def add(self, arrays: GraphArrays) -> str:
        """Keep a graph (at batch 1) unless it is there already; returns its key."""
        rows, edges, edge_bytes, io_bytes = _packed(arrays)
        key = _digest(rows, edges, edge_bytes, io_bytes)
        if key not in self._position:
            self._position[key] = len(self._position)
            self._nodes.append(np.array([self._number_of(row) for row in rows], np.int32))
            self._edges.append(edges.T)
            self._edge_bytes.append(edge_bytes)
            self._io_bytes.append(io_bytes)
        return key

    def _number_of(self, row: np.ndarray) -> int:
        if self._row_number is None:
            self._row_number = {row.tobytes(): number for number, row in enumerate(self._rows)}
        content = row.tobytes()
        number = self._row_number.get(content)
        if number is None:
            number = self._row_number[content] = len(self._rows) + len(self._new_rows)
            self._new_rows.append(row)
        return number

    def damaged_keys(self) -> list[str]:
        """Keys whose stored content is no longer what they were made from."""
        return [key for key, position in self._position.items() if key != _digest(*self._parts(position))]

    def save(self, path: Path) -> None:
        """Write the store; an older file is replaced only once the new one is complete."""
        edges = self._edges.joined()
        sizes, edge_size = np.unique(self._edge_bytes.joined(), return_inverse=True)
        temporary = path.with_name(path.name + ".partial")
        try:
            with temporary.open("wb") as stream:
                np.savez_compressed(
                    stream,
                    format=np.int32(_FORMAT),
                    fields=np.array(NODE_FIELDS),
                    keys=np.array(list(self._position), f"S{2 * _KEY_BYTES}"),
                    names=np.array(list(self.names), str),
                    named=np.array([self._position[key] for key in self.names.values()], np.int32),
                    rows=self._row_table(),
                    lengths=self._nodes.lengths(),
                    nodes=self._nodes.joined(),
                    edge_lengths=self._edge_bytes.lengths(),
                    # Targets follow soon after their sources: distances compress to a fraction.
                    edge_source=edges[:, 0],
                    edge_distance=edges[:, 1] - edges[:, 0],
                    edge_size=edge_size.astype(np.int32),
                    sizes=sizes,
                    io_bytes=self._io_bytes.joined().reshape(-1, 2),
                )
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: Path) -> GraphStore:
        """Read a store.

        Raises:
            DataError: the file is missing, damaged, or of another version.
        """
        try:
            with np.load(path, allow_pickle=False) as archive:
                if sum(member.file_size for member in archive.zip.infolist()) > _MAX_BYTES:
                    raise ValueError(f"unpacked it is larger than {_MAX_BYTES >> 20} MiB")
                data = {name: archive[name] for name in archive.files}
        except OSError as error:
            raise DataError(f"cannot read the graph store {path}: {error.strerror or error}") from None
        except _DAMAGE as error:
            raise DataError(f"the graph store {path} is damaged ({error}); import the sources again") from None
        try:
            return cls._from_arrays(data)
        except (KeyError, ValueError, IndexError, TypeError):
            raise DataError(
                f"the graph store {path} is damaged or of another version; import the sources again"
            ) from None

    @classmethod
    def _from_arrays(cls, data: dict[str, np.ndarray]) -> GraphStore:
        if int(data["format"]) != _FORMAT or tuple(data["fields"].tolist()) != NODE_FIELDS:
            raise ValueError("format")
        rows, nodes, lengths, edge_lengths = data["rows"], data["nodes"], data["lengths"], data["edge_lengths"]
        if lengths.sum() != len(nodes) or edge_lengths.sum() != len(data["edge_size"]):
            raise ValueError("lengths")
        if len(nodes) and not 0 <= nodes.min() <= nodes.max() < len(rows):
            raise ValueError("row numbers")
        keys = np.char.decode(data["keys"], "ascii").tolist()
        if lengths.min(initial=0) < 0 or edge_lengths.min(initial=0) < 0:
            raise ValueError("lengths")
        operators = np.repeat(lengths, edge_lengths)  # of the graph that an edge belongs to
        source, target = data["edge_source"], data["edge_source"] + data["edge_distance"]
        if len(source) and (min(source.min(), target.min()) < 0 or (np.maximum(source, target) >= operators).any()):
            raise ValueError("edges")
        if not len(keys) == len(lengths) == len(edge_lengths) == len(data["io_bytes"]):
            raise ValueError("keys")
        store = cls()
        store._position = {key: position for position, key in enumerate(keys)}
        if "names" in data:  # absent from stores of before
            store.names = {str(name): keys[at] for name, at in zip(data["names"], data["named"], strict=True)}
        store._rows = rows
        store._nodes = _Pieces(nodes, lengths)
        store._edges = _Pieces(np.stack([source, target], axis=1), edge_lengths)
        store._edge_bytes = _Pieces(data["sizes"][data["edge_size"]], edge_lengths)
        store._io_bytes = _Pieces(data["io_bytes"].reshape(-1), np.full(len(keys), 2))
        return store
