"""A network taken apart into layers that run one by one, as per-layer methods see it."""

from __future__ import annotations

import numpy as np

from gnnperf.graph import GraphArrays, OpClass


def single_layers(graph: GraphArrays) -> list[GraphArrays]:
    """A graph for each operator that runs, with the activation behind it where nothing else reads its output.

    Input and output are those of the layer: what it reads from others and what it hands on.
    """
    consumers: list[list[int]] = [[] for _ in range(graph.num_nodes)]
    for source, target in graph.edge_index.T:
        consumers[source].append(int(target))
    layers, joined = [], set()
    for node in range(graph.num_nodes):
        if graph.op_class[node] == OpClass.VIEW or node in joined:
            continue
        nodes = [node]
        if graph.op_class[node] != OpClass.ACTIVATION and len(consumers[node]) == 1:
            behind = consumers[node][0]
            if graph.op_class[behind] == OpClass.ACTIVATION:
                nodes.append(behind)
                joined.add(behind)
        layers.append(_part(graph, nodes))
    return layers


def _part(graph: GraphArrays, nodes: list[int]) -> GraphArrays:
    """The chain of ``nodes`` by itself."""
    inside = np.isin(graph.edge_index, nodes).all(axis=0)
    number = {node: place for place, node in enumerate(nodes)}
    edges = [[number[int(node)] for node in ends] for ends in graph.edge_index[:, inside]]
    return GraphArrays(
        graph.op_class[nodes],
        graph.node[nodes],
        np.array(edges, np.int32).reshape(2, -1),
        graph.edge_bytes[inside],
        float(graph.column("input_bytes")[nodes[0]]),
        float(graph.column("output_bytes")[nodes[-1]]),
        graph.batch,
    )
