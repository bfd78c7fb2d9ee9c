"""Graphs that were read before, by the content of their files: reading one again costs a tenth.

An entry's name is a hash of the file's structure (weights are not part of it, so that gigabytes are not read), of the
sizes asked for, and of the code that reads files. Entries are written under another name and then renamed, so that
processes can share a cache; a damaged entry counts as none. Entries that were not used for longest go first.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import onnx

from gnnperf import graph as graph_package
from gnnperf.graph import Edge, Node, OpClass, OpGraph, Tensor, read_graph
from gnnperf.graph.reader import read_structure

SWITCH = "GNNPERF_CACHE"
"""Environment variable: a folder to keep graphs in instead of the user's cache folder, or ``off``."""

MAX_BYTES = 512 * 2**20
_SHARDS = 64  # folders; each is kept within its part of the size by itself, so that no write has to look at all
_LOOK_EVERY = 16  # writes into a folder, on average


class GraphCache:
    """A folder of graphs.

    Args:
        folder: made when it is first written.
        max_bytes: about what all entries together take at most.
    """

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self.folder = Path(folder)
        self.max_bytes = max_bytes

    @classmethod
    def of_user(cls) -> GraphCache | None:
        """The cache that :data:`SWITCH` says, by default in the user's cache folder; None where it is off."""
        setting = os.environ.get(SWITCH, "")
        if setting.lower() == "off":
            return None
        if setting:
            return cls(Path(setting))
        from platformdirs import user_cache_path

        return cls(user_cache_path("gnnperf", appauthor=False) / "graphs")

    def read_graph(
        self,
        source: str | Path | bytes,
        *,
        batch: int | None = None,
        dims: Mapping[str, int] | None = None,
        input_shapes: Mapping[str, tuple[int, ...]] | None = None,
    ) -> OpGraph:
        """As :func:`gnnperf.graph.read_graph`, from the cache where the same was read before.

        Raises:
            ModelFileError: as there. A cache that cannot be read or written is no error.
        """
        name = None if isinstance(source, bytes) else Path(source).stem
        structure = read_structure(source)
        asked = [batch, name, sorted((dims or {}).items()), sorted((input_shapes or {}).items()), _code_version()]
        key = hashlib.sha256(structure + json.dumps(asked, default=str).encode()).hexdigest()
        graph = self._get(key)
        if graph is None:
            graph = read_graph(structure, batch=batch, dims=dims, input_shapes=input_shapes, name=name)
            self._put(key, graph)
        return graph

    def _path(self, key: str) -> Path:
        return self.folder / f"{int(key[:4], 16) % _SHARDS:02d}" / key

    def _get(self, key: str) -> OpGraph | None:
        path = self._path(key)
        try:
            graph = _decode(zlib.decompress(path.read_bytes()))
            os.utime(path)  # used just now
        except (OSError, ValueError, TypeError, KeyError, zlib.error):
            return None
        return graph

    def _put(self, key: str, graph: OpGraph) -> None:
        content = zlib.compress(_encode(graph), 1)
        if len(content) > self.max_bytes // _SHARDS:
            return
        path = self._path(key)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            if int(key[4:8], 16) % _LOOK_EVERY == 0:
                self._drop_oldest(path.parent)
            handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".")
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(content)
                os.replace(partial, path)
            except BaseException:
                os.unlink(partial)
                raise

    def _drop_oldest(self, shard: Path) -> None:
        """Make room for as many entries as come before the next look."""
        entries = []
        for entry in os.scandir(shard):
            with suppress(FileNotFoundError):  # another process dropped it
                status = entry.stat()
                entries.append((status.st_mtime, status.st_size, entry.path))
        total, limit = sum(size for _, size, _ in entries), 0.75 * self.max_bytes / _SHARDS
        for _, size, path in sorted(entries):
            if total <= limit:
                break
            with suppress(FileNotFoundError):
                os.unlink(path)
            total -= size


@cache
def _code_version() -> str:
    """Differs where the code that reads files does."""
    folder = Path(graph_package.__file__).parent
    stamps = [(str(path), *_stamp(path)) for path in sorted(folder.rglob("*.py"))]
    return hashlib.sha256(repr((stamps, onnx.__version__)).encode()).hexdigest()


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


_NODE_TUPLES = ("gemm", "kernel", "stride", "dilation", "input_shape", "output_shape")
_NODE_FIELDS, _EDGE_FIELDS, _TENSOR_FIELDS = (tuple(kind.__dataclass_fields__) for kind in (Node, Edge, Tensor))


def _encode(graph: OpGraph) -> bytes:
    """JSON, a column a field: nothing in it is executed when it is read."""
    return json.dumps(
        {
            "name": graph.name,
            "batch": graph.batch,
            "assumptions": graph.assumptions,
            "warnings": graph.warnings,
            "nodes": [[getattr(node, name) for node in graph.nodes] for name in _NODE_FIELDS],
            "edges": [[getattr(edge, name) for edge in graph.edges] for name in _EDGE_FIELDS],
            "inputs": [[getattr(tensor, name) for tensor in graph.inputs] for name in _TENSOR_FIELDS],
            "outputs": [[getattr(tensor, name) for tensor in graph.outputs] for name in _TENSOR_FIELDS],
        },
        separators=(",", ":"),
        default=int,  # numpy's
    ).encode()


def _decode(content: bytes) -> OpGraph:
    values = json.loads(content)
    nodes = dict(zip(_NODE_FIELDS, values["nodes"], strict=True))
    nodes["op_class"] = map(OpClass, nodes["op_class"])
    for name in _NODE_TUPLES:
        nodes[name] = map(tuple, nodes[name])
    return OpGraph(
        name=values["name"],
        nodes=list(map(Node, *nodes.values())),
        edges=list(map(Edge, *values["edges"])),
        inputs=_tensors(values["inputs"]),
        outputs=_tensors(values["outputs"]),
        batch=values["batch"],
        assumptions=values["assumptions"],
        warnings=values["warnings"],
    )


def _tensors(columns: list[list]) -> list[Tensor]:
    names, shapes, dtypes, sizes = columns
    return list(map(Tensor, names, map(tuple, shapes), dtypes, sizes))
