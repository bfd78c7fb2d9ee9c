"""ai.onnx.ml: linear models, support vectors, tree ensembles."""

from __future__ import annotations

from math import prod

from gnnperf.graph.costs.tables import CLASSICAL_ML_FLOPS
from gnnperf.graph.opgraph import Node
from gnnperf.graph.traced import Operator

_FLOAT_BYTES = 4


def classical(operator: Operator, node: Node) -> None:
    """Parameters stand in attributes; every row of the input meets all of them, in trees one path."""
    attributes, source = operator.attributes, operator.input_shape(0)
    rows = source[0] if source and len(source) > 1 else 1
    kind = operator.op.removeprefix("ai.onnx.ml.")
    if kind.startswith(("Linear", "SVM")):
        coefficients = len(attributes.get("support_vectors", ())) or len(attributes.get("coefficients", ()))
        node.parameters = coefficients + len(attributes.get("intercepts", ()))
        node.macs = rows * coefficients
        node.flops = 2 * node.macs
    elif kind.startswith("TreeEnsemble"):
        trees = attributes.get("nodes_treeids", ())
        roots = len(set(trees) or attributes.get("tree_roots", (0,)))
        nodes = len(trees) or len(attributes.get("nodes_featureids", (0,)))
        node.parameters = nodes
        node.flops = rows * roots * max(1, (nodes // max(1, roots)).bit_length())  # one path down every tree
    elif source:
        node.flops = prod(source) * CLASSICAL_ML_FLOPS[operator.op]
    node.weight_bytes += node.parameters * _FLOAT_BYTES
