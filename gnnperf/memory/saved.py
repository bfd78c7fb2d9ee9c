"""What the forward part of a training step has to keep for the backward part.

The rules are PyTorch's derivatives (tools/autograd/derivatives.yaml): a convolution keeps its input, a ReLU its output,
an addition nothing. Other frameworks keep much the same.
"""

from __future__ import annotations

from gnnperf.graph import Node, OpClass, OpGraph
from gnnperf.memory.storages import OUTSIDE, Storages, storages

_KEEP_INPUTS = frozenset({
    OpClass.CONV, OpClass.GROUPED_CONV, OpClass.DEPTHWISE_CONV, OpClass.CONV_TRANSPOSE, OpClass.GEMM, OpClass.MATMUL,
    OpClass.ATTENTION, OpClass.BATCH_NORM, OpClass.LAYER_NORM, OpClass.LRN, OpClass.POOLING, OpClass.RECURRENT,
    OpClass.EMBEDDING, OpClass.OTHER,
})  # fmt: skip
_KEEP_OUTPUT = frozenset({OpClass.SOFTMAX, OpClass.ATTENTION, OpClass.RECURRENT})
_ACTIVATIONS_BY_OUTPUT = frozenset({"Relu", "Sigmoid", "Tanh", "Exp", "Sqrt", "Reciprocal", "Elu", "Selu"})
_ACTIVATIONS_WITHOUT = frozenset({"Neg", "Sign", "Ceil", "Floor", "Round", "Not", "BitwiseNot", "IsNaN", "IsInf"})
_NEED_FACTORS = frozenset({"Mul", "Div", "Pow", "Max", "Min", "Mod"})
_NEED_EXTREMES = frozenset({"ReduceMax", "ReduceMin", "ReduceL2", "ReduceProd", "ReduceLogSumExp", "ReduceSumSquare"})
_INDEX_BYTES = 8  # PyTorch notes where each maximum was as an int64
_GATES_PER_STATE = 4  # an LSTM keeps its four gates beside its states


def kept_by(graph: OpGraph, held: Storages) -> tuple[list[list[int]], list[int]]:
    """What each of N operators keeps.

    Returns:
        For each operator the holders, see :class:`Storages`, of tensors that have to stay until its backward part ran,
        and ``[N]`` bytes that it keeps beside them.
    """
    kept, extra_bytes = [], []
    ends_of_kernels = set(
        held.fused_into[index] for index in range(len(graph.nodes)) if held.fused_into[index] != index
    )
    for index, node in enumerate(graph.nodes):
        if held.fused_into[index] != index:
            kept.append([])
            extra_bytes.append(0)
            continue
        if index in ends_of_kernels:
            kept.append(_kernel_inputs(held, index))
            extra_bytes.append(0)
            continue
        tensors = list(held.inputs[index]) if _keeps_inputs(node, held.inputs[index]) else []
        if node.op_class in _KEEP_OUTPUT or node.op_type in _ACTIVATIONS_BY_OUTPUT:
            tensors.append(held.holder[index])
        kept.append(tensors)
        extra_bytes.append(_extra_bytes(node))
    return kept, extra_bytes


def saved_for_backward_bytes(graph: OpGraph) -> int:
    """Bytes that are kept when the forward part of a training step ends, the network's inputs among them.

    In the number formats of the file; the weights are not counted.
    """
    held = storages(graph)
    kept, extra_bytes = kept_by(graph, held)
    tensors = {holder for holders in kept for holder in holders}
    total = sum(held.size_bytes[holder] for holder in tensors if holder != OUTSIDE) + sum(extra_bytes)
    return total + (graph.input_bytes if OUTSIDE in tensors else 0)


def _keeps_inputs(node: Node, inputs: list[int]) -> bool:
    if node.op_class in _KEEP_INPUTS:
        return True
    if node.op_class == OpClass.ACTIVATION:
        return node.op_type not in _ACTIVATIONS_BY_OUTPUT and node.op_type not in _ACTIVATIONS_WITHOUT
    if node.op_class == OpClass.ELEMENTWISE:
        # A product with a constant needs nothing but the constant.
        return node.op_type in _NEED_FACTORS and (len(inputs) > 1 or node.parameters > 0 or node.op_type == "Pow")
    return node.op_class == OpClass.REDUCTION and node.op_type in _NEED_EXTREMES


def _kernel_inputs(held: Storages, end: int) -> list[int]:
    """What a kernel reads that was written outside of it."""
    inner = {end}
    waiting, read = [end], []
    while waiting:
        for source in held.inputs[waiting.pop()]:
            if source != OUTSIDE and held.fused_into[source] == end and source not in inner:
                inner.add(source)
                waiting.append(source)
            elif source not in inner:
                read.append(source)
    return list(dict.fromkeys(read))


def _extra_bytes(node: Node) -> int:
    if node.op_type == "MaxPool":
        return _INDEX_BYTES * node.output_elements // node.repeats
    if node.op_class == OpClass.RECURRENT:
        return _GATES_PER_STATE * node.output_bytes
    return 0
