"""Several graphs as one disjoint union, the form in which the network reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gnnperf.graph.arrays import GraphArrays


@dataclass
class GraphBatch:
    """G graphs with N operators and E tensors in all.

    Attributes:
        op_class: ``[N]`` int64.
        node: ``[N, len(NODE_FIELDS)]`` float32, raw quantities.
        edge_index: ``[2, E]`` int64.
        edge_bytes: ``[E]`` float32.
        node_graph: ``[N]`` int64, the graph that each operator belongs to.
        graph: ``[G, 3]`` float32: bytes that enter, bytes that leave, batch size.
    """

    op_class: np.ndarray
    node: np.ndarray
    edge_index: np.ndarray
    edge_bytes: np.ndarray
    node_graph: np.ndarray
    graph: np.ndarray

    @property
    def num_graphs(self) -> int:
        """Number of graphs."""
        return len(self.graph)


def collate(graphs: Sequence[GraphArrays]) -> GraphBatch:
    """Concatenate graphs; operator indices of later graphs are shifted."""
    sizes = [graph.num_nodes for graph in graphs]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return GraphBatch(
        op_class=np.concatenate([graph.op_class for graph in graphs]).astype(np.int64),
        node=np.concatenate([graph.node for graph in graphs]).astype(np.float32),
        edge_index=np.concatenate(
            [graph.edge_index.astype(np.int64) + offset for graph, offset in zip(graphs, offsets, strict=False)], axis=1
        ),
        edge_bytes=np.concatenate([graph.edge_bytes for graph in graphs]).astype(np.float32),
        node_graph=np.repeat(np.arange(len(graphs)), sizes),
        graph=np.array([[g.input_bytes, g.output_bytes, g.batch] for g in graphs], np.float32).reshape(-1, 3),
    )
