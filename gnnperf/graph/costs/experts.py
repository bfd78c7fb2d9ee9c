"""Mixture of experts: every token goes through a few of many feed-forward networks."""

from __future__ import annotations

from gnnperf.graph.opgraph import Node, OpClass
from gnnperf.graph.traced import Operator

_MATRIX_POSITIONS = {"com.microsoft.MoE": (2, 4, 6), "com.microsoft.QMoE": (2, 5, 8)}
_DEFAULT_BITS = 4


def mixture_of_experts(operator: Operator, node: Node) -> None:
    """``[tokens, hidden]``, the ``k`` experts of each token evenly spread; every expert that is met reads its weights.

    ``gemm`` is one product of one expert, as if all its matrices were like the first.
    """
    attributes, source = operator.attributes, operator.input_shape(0)
    experts = operator.input_shape(1)[-1]
    quantised = operator.op == "com.microsoft.QMoE"
    packed = 8 // attributes.get("expert_weight_bits", _DEFAULT_BITS) if quantised else 1
    matrices = [tensor for p in _MATRIX_POSITIONS[operator.op] if (tensor := operator.input(p)) is not None]
    hidden = source[-1]
    sizes = [tensor.elements * packed // experts for tensor in matrices]  # of one expert
    visits = node.output_elements // hidden * attributes.get("k", 1)
    met = min(experts, visits)
    node.op_class = OpClass.GEMM
    node.macs = visits * sum(sizes)
    node.flops = 2 * node.macs
    node.gemm = (-(-visits // met), sizes[0] // hidden, hidden, met * round(sum(sizes) / sizes[0]))
    node.in_channels, node.out_channels = hidden, hidden
    node.weight_bytes = node.weight_bytes * met // experts
