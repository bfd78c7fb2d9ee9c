from dataclasses import replace

import numpy as np
import pytest

from gnnperf.datasets.graph_building import build_arrays
from gnnperf.graph.isomorphism import isomorphism_codes


@pytest.fixture(scope="module")
def cell():
    return build_arrays("nasbench201/012340")


def renumbered(graph, seed=0):
    order = np.random.default_rng(seed).permutation(graph.num_nodes)
    place = np.argsort(order)
    edges = np.random.default_rng(seed + 1).permutation(graph.edge_index.shape[1])
    return replace(
        graph,
        op_class=graph.op_class[order],
        node=graph.node[order],
        edge_index=place[graph.edge_index[:, edges]],
        edge_bytes=graph.edge_bytes[edges],
    )


def test_numbering_does_not_matter(cell):
    codes = isomorphism_codes([cell, renumbered(cell), renumbered(cell, 5)])
    assert len(set(codes.tolist())) == 1


def test_two_names_of_one_cell_have_one_code():
    """The last node is a sum of two sums, one of which is the node before: which one that is, is but a name."""
    first, second, other = (build_arrays(f"nasbench201/{cell}") for cell in ("123401", "140231", "122401"))
    codes = isomorphism_codes([first, second, other])
    assert codes[0] == codes[1] != codes[2]


def test_what_differs_in_a_tensor_an_edge_or_an_operator_is_another_network(cell):
    edges = cell.edge_index.copy()
    edges[0, -1] = 0
    node = cell.node.copy()
    node[-1, 0] += 1
    codes = isomorphism_codes([cell, replace(cell, edge_index=edges), replace(cell, node=node), cell.at_batch(2)])
    assert len(set(codes.tolist())) == 4


def test_no_graphs_have_no_codes():
    assert isomorphism_codes([]).shape == (0,)
