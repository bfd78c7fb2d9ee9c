"""Which graphs are the same network, however its operators are numbered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gnnperf.graph.arrays import GraphArrays
from gnnperf.graph.batch import GraphBatch, collate

_ROUNDS = 6
_CHUNK = 1000  # graphs


def isomorphism_codes(graphs: Sequence[GraphArrays]) -> np.ndarray:
    """``[G]`` uint64, equal for graphs whose operators, and tensors between them, agree up to their numbering.

    Weisfeiler-Lehman colour refinement (Shervashidze et al.: Weisfeiler-Lehman graph kernels. JMLR 12, 2011) over both
    directions of an edge, six rounds. Networks that six rounds cannot tell apart have equal codes too; among networks
    that people run, such twins are rare.

    Args:
        graphs: at any batch size; the same network at two of them is not the same graph.
    """
    chunks = (graphs[begin : begin + _CHUNK] for begin in range(0, len(graphs), _CHUNK))
    return np.concatenate([np.zeros(0, np.uint64), *(_codes(collate(chunk)) for chunk in chunks)])


def _codes(batch: GraphBatch) -> np.ndarray:
    source, target = batch.edge_index
    with np.errstate(over="ignore"):  # sums are modulo 2^64
        tensor = _hash(batch.edge_bytes.astype(np.float64).view(np.uint64))
        columns = np.column_stack([batch.op_class, batch.node]).astype(np.float64)
        colour = _hash_rows([column.copy().view(np.uint64) for column in columns.T])
        for _ in range(_ROUNDS):
            above = _sums(_hash(colour[source] + tensor), target, len(colour))
            below = _sums(_hash(colour[target] ^ tensor), source, len(colour))
            colour = _hash_rows([colour, above, below])
        return _hash(_sums(_hash(colour), batch.node_graph, batch.num_graphs))


def _sums(values: np.ndarray, place: np.ndarray, size: int) -> np.ndarray:
    sums = np.zeros(size, np.uint64)
    np.add.at(sums, place, values)
    return sums


def _hash_rows(columns: list[np.ndarray]) -> np.ndarray:
    code = np.zeros_like(columns[0])
    for column in columns:
        code = _hash(code * np.uint64(3) + column)
    return code


def _hash(code: np.ndarray) -> np.ndarray:
    """The finaliser of MurmurHash3 (Appleby), after a step that moves zero."""
    code = code + np.uint64(0x9E3779B97F4A7C15)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        code = (code ^ (code >> np.uint64(33))) * np.uint64(factor)
    return code ^ (code >> np.uint64(33))
