"""An ONNX file as an operator graph, without its weights, and as arrays."""

from gnnperf.graph.arrays import NODE_FIELDS, GraphArrays, to_arrays
from gnnperf.graph.batch import GraphBatch, collate
from gnnperf.graph.build import read_graph
from gnnperf.graph.opgraph import Edge, Node, OpClass, OpGraph, Tensor

__all__ = [
    "NODE_FIELDS",
    "Edge",
    "GraphArrays",
    "GraphBatch",
    "Node",
    "OpClass",
    "OpGraph",
    "Tensor",
    "collate",
    "read_graph",
    "to_arrays",
]
