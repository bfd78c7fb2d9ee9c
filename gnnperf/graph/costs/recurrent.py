"""LSTM, GRU and RNN over a whole sequence."""

from __future__ import annotations

from gnnperf.graph.opgraph import Node, OpClass
from gnnperf.graph.traced import Operator

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1, "com.microsoft.DynamicQuantizeLSTM": 4}
_FLOPS_PER_HIDDEN = {4: 4 * 5 + 5, 3: 3 * 5 + 4, 1: 2}  # biases, gate functions and state update of one hidden unit


def recurrent(operator: Operator, node: Node) -> None:
    """``gemm`` is one time step of one direction: the input's and the state's products with the gates' weights."""
    node.op_class = OpClass.RECURRENT
    gates, attributes = _GATES[operator.op], operator.attributes
    source, weight = operator.input_shape(0), operator.input_shape(1)
    hidden = attributes.get("hidden_size")
    if not hidden and weight and operator.op in ("LSTM", "GRU", "RNN"):
        hidden = weight[1] // gates
    if not source or len(source) != 3 or not hidden:
        node.resolved = False
        return
    directions = 2 if attributes.get("direction", b"forward") == b"bidirectional" else 1
    steps, batch, features = source if not attributes.get("layout") else (source[1], source[0], source[2])
    node.in_channels, node.out_channels = features, hidden
    node.gemm = (batch, gates * hidden, features + hidden, steps * directions)
    node.macs = batch * gates * hidden * (features + hidden) * steps * directions
    node.flops = 2 * node.macs + _FLOPS_PER_HIDDEN[gates] * batch * hidden * steps * directions
