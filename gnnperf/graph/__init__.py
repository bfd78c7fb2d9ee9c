"""An ONNX file as an operator graph, without its weights."""

from gnnperf.graph.build import read_graph
from gnnperf.graph.opgraph import Edge, Node, OpClass, OpGraph, Tensor

__all__ = ["Edge", "Node", "OpClass", "OpGraph", "Tensor", "read_graph"]
