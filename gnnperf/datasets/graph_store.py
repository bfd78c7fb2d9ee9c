"""Every graph that the measurements refer to, each structure once, in one compact file.

All graphs are kept at batch 1 (:meth:`GraphArrays.at_batch` gives the others). Networks of one search space are built
from the same few operators, so operator rows are stored once and graphs refer to them by number: 25,000 networks of
search spaces take a few megabytes, and load in a second.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from gnnperf.errors import DataError
from gnnperf.graph.arrays import NODE_FIELDS, GraphArrays

_FORMAT = 1
_KEY_BYTES = 8


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


class GraphStore:
    """Graphs by key. Behaves like a read-only mapping ``key -> GraphArrays``, plus :meth:`add`.

    Quantities are kept in float32, a relative error below 6e-8.
    """

    def __init__(self) -> None:
        self._position: dict[str, int] = {}
        self._row_number: dict[bytes, int] = {}
        self._rows: list[np.ndarray] = []  # operator rows, each once
        self._nodes: list[np.ndarray] = []  # a graph's operators as row numbers
        self._edges: list[np.ndarray] = []
        self._edge_bytes: list[np.ndarray] = []
        self._io_bytes: list[np.ndarray] = []
        self._row_table: np.ndarray | None = None

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
            position = self._position[key]
        except KeyError:
            raise DataError(f"the graph store has no graph {key!r}; import the source again") from None
        if self._row_table is None or len(self._row_table) < len(self._rows):
            self._row_table = np.array(self._rows, np.float32).reshape(-1, 1 + len(NODE_FIELDS))
            self._rows = list(self._row_table)
        rows = self._row_table[self._nodes[position]]
        input_bytes, output_bytes = self._io_bytes[position]
        return GraphArrays(
            rows[:, 0].astype(np.int16),
            rows[:, 1:].astype(np.float64),
            self._edges[position].astype(np.int32),
            self._edge_bytes[position].astype(np.float64),
            float(input_bytes),
            float(output_bytes),
        )

    def add(self, arrays: GraphArrays) -> str:
        """Keep a graph (at batch 1) unless it is there already; returns its key."""
        rows, edges, edge_bytes, io_bytes = _packed(arrays)
        key = _digest(rows, edges, edge_bytes, io_bytes)
        if key not in self._position:
            numbers = np.empty(len(rows), np.int32)
            for index, row in enumerate(rows):
                content = row.tobytes()
                number = self._row_number.get(content)
                if number is None:
                    number = self._row_number[content] = len(self._rows)
                    self._rows.append(row)
                numbers[index] = number
            self._position[key] = len(self._nodes)
            self._nodes.append(numbers)
            self._edges.append(edges)
            self._edge_bytes.append(edge_bytes)
            self._io_bytes.append(io_bytes)
        return key

    def damaged_keys(self) -> list[str]:
        """Keys whose stored content is no longer what they were made from."""
        table = np.array(self._rows, np.float32).reshape(-1, 1 + len(NODE_FIELDS))
        return [
            key
            for key, at in self._position.items()
            if key
            != _digest(
                table[self._nodes[at]],
                np.ascontiguousarray(self._edges[at], np.int32),
                self._edge_bytes[at],
                self._io_bytes[at],
            )
        ]

    def save(self, path: Path) -> None:
        """Write the store; an older file is replaced only once the new one is complete."""
        if len(self):
            lengths = np.array([len(nodes) for nodes in self._nodes], np.int32)
            edge_lengths = np.array([len(edge_bytes) for edge_bytes in self._edge_bytes], np.int32)
            nodes, edges = np.concatenate(self._nodes), np.concatenate(self._edges, axis=1)
            edge_bytes, io_bytes = np.concatenate(self._edge_bytes), np.stack(self._io_bytes)
        else:
            lengths = edge_lengths = nodes = np.zeros(0, np.int32)
            edges, edge_bytes, io_bytes = np.zeros((2, 0), np.int32), np.zeros(0, np.float32), np.zeros((0, 2))
        sizes, edge_size = np.unique(edge_bytes, return_inverse=True)
        temporary = path.with_name(path.name + ".partial")
        try:
            with temporary.open("wb") as stream:
                np.savez_compressed(
                    stream,
                    format=np.int32(_FORMAT),
                    fields=np.array(NODE_FIELDS),
                    keys=np.array(list(self._position), f"S{2 * _KEY_BYTES}"),
                    rows=np.array(self._rows, np.float32).reshape(-1, 1 + len(NODE_FIELDS)),
                    lengths=lengths,
                    nodes=nodes,
                    edge_lengths=edge_lengths,
                    # Targets follow soon after their sources: distances compress to a fraction.
                    edge_source=edges[0],
                    edge_distance=edges[1] - edges[0],
                    edge_size=edge_size.astype(np.int32),
                    sizes=sizes,
                    io_bytes=io_bytes.astype(np.float32),
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
                data = {name: archive[name] for name in archive.files}
        except OSError as error:
            raise DataError(f"cannot read the graph store {path}: {error.strerror or error}") from None
        except (ValueError, EOFError, zipfile.BadZipFile, zipfile.zlib.error) as error:
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
        edges = np.stack([data["edge_source"], data["edge_source"] + data["edge_distance"]])
        edge_bytes = data["sizes"][data["edge_size"]]
        node_end, edge_end = np.cumsum(lengths).tolist(), np.cumsum(edge_lengths).tolist()
        store = cls()
        store._position = {key: index for index, key in enumerate(np.char.decode(data["keys"], "ascii").tolist())}
        if not len(store._position) == len(lengths) == len(edge_lengths) == len(data["io_bytes"]):
            raise ValueError("keys")
        store._row_table = rows
        store._rows = list(rows)
        store._row_number = {row.tobytes(): index for index, row in enumerate(rows)}
        node_begin, edge_begin = [0, *node_end[:-1]], [0, *edge_end[:-1]]
        store._nodes = [nodes[a:b] for a, b in zip(node_begin, node_end, strict=False)]
        store._edges = [edges[:, a:b] for a, b in zip(edge_begin, edge_end, strict=False)]
        store._edge_bytes = [edge_bytes[a:b] for a, b in zip(edge_begin, edge_end, strict=False)]
        store._io_bytes = list(data["io_bytes"])
        return store
