"""Matrix products: Gemm, MatMul, their quantised and fused forms, Einsum."""

from __future__ import annotations

from math import prod

from gnnperf.graph.opgraph import Node, OpClass
from gnnperf.graph.traced import Operator

_SECOND_OPERAND = {"QLinearMatMul": 3, "com.microsoft.QGemm": 3}
_BIAS = {"Gemm": 2, "com.microsoft.FusedGemm": 2, "com.microsoft.QGemm": 6, "com.microsoft.DynamicQuantizeMatMul": 4,
         "com.microsoft.MatMulIntegerToFloat": 6, "com.microsoft.MatMulNBits": 5}  # fmt: skip


def matrix_product(operator: Operator, node: Node) -> None:
    """A product of two tensors; with a weight on either side it is a GEMM."""
    left, right = operator.input(0), operator.input(_SECOND_OPERAND.get(operator.op, 1))
    weighted = (left is not None and left.constant) or (right is not None and right.constant)
    node.op_class = OpClass.GEMM if weighted or operator.op in _BIAS else OpClass.MATMUL
    if left is None or right is None or not left.shape or not right.shape:
        node.resolved = False
        return
    a, b = left.shape, right.shape
    if operator.attributes.get("transA"):
        a = (*a[:-2], a[-1], a[-2])
    if operator.attributes.get("transB"):
        b = (*b[:-2], b[-1], b[-2])
    a = a if len(a) > 1 else (1, *a)
    b = b if len(b) > 1 else (*b, 1)
    rows, depth, columns = a[-2], a[-1], b[-1]
    batches_a, batches_b = prod(a[:-2]), prod(b[:-2])
    count = _broadcast_count(a[:-2], b[:-2])
    if not right.constant and left.constant:
        # weight x activation: the same product transposed, the activation's columns are its rows
        rows, columns, batches_a, batches_b = columns, rows, batches_b, batches_a
    if batches_b == 1 and weighted:
        rows, count = rows * count, 1
    _fill(operator, node, rows, columns, depth, count)


def block_quantised_product(operator: Operator, node: Node) -> None:
    """A product by a weight matrix of four or so bits, whose sizes stand in attributes."""
    node.op_class = OpClass.GEMM
    source = operator.input_shape(0)
    if not source:
        node.resolved = False
        return
    depth, columns = operator.attributes["K"], operator.attributes["N"]
    _fill(operator, node, prod(source) // depth, columns, depth, 1)


def _fill(operator: Operator, node: Node, rows: int, columns: int, depth: int, count: int) -> None:
    node.gemm = (rows, columns, depth, count)
    node.macs = rows * columns * depth * count
    node.flops = 2 * node.macs
    if node.op_class == OpClass.GEMM:
        node.in_channels, node.out_channels = depth, columns
    if operator.op in _BIAS and operator.input(_BIAS[operator.op]) is not None:
        node.flops += rows * columns * count


def _broadcast_count(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Number of matrices after broadcasting the leading dimensions."""
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    return prod(max(x, y) if x and y else 0 for x, y in zip(a, b, strict=True))


def einsum(operator: Operator, node: Node) -> None:
    """Einstein summation: contracted pairwise, from left to right."""
    equation = operator.attributes["equation"].decode().replace(" ", "")
    left, _, right = equation.partition("->")
    terms = left.split(",")
    shapes = [operator.input_shape(i) for i in range(len(operator.inputs))]
    weighted = any(tensor is not None and tensor.constant for tensor in operator.inputs)
    node.op_class = OpClass.GEMM if weighted else OpClass.MATMUL
    if len(terms) != len(shapes) or None in shapes:
        node.resolved = False
        return
    sizes: dict[str, int] = {}
    expanded = []
    for term, shape in zip(terms, shapes, strict=True):
        labels = _labels(term, len(shape))
        expanded.append(labels)
        for label, size in zip(labels, shape, strict=False):
            sizes[label] = max(sizes.get(label, 1), size)
    everything = [label for labels in expanded for label in labels]
    broadcast = sorted({label for label in everything if label.isdecimal()}, key=int, reverse=True)
    if "->" in equation:
        explicit = list(right.replace("...", ""))
        output = explicit + (broadcast if "..." in right else [])
    else:
        output = broadcast + sorted({label for label in everything if everything.count(label) == 1})
    if len(terms) == 1:
        node.op_class = OpClass.REDUCTION if set(everything) - set(output) else OpClass.DATA_MOVEMENT
        node.flops = prod(sizes.values()) if node.op_class == OpClass.REDUCTION else 0
        return
    current, macs = set(expanded[0]), 0
    for position, labels in enumerate(expanded[1:], 1):
        later = {label for rest in expanded[position + 1 :] for label in rest} | set(output)
        macs += prod(sizes[label] for label in current | set(labels))
        current = (current | set(labels)) & later
    node.macs, node.flops = macs, 2 * macs
    if len(terms) == 2:
        a, b, kept = set(expanded[0]), set(expanded[1]), set(output)
        if operator.inputs[0].constant and not operator.inputs[1].constant:
            a, b = b, a
        count = prod(sizes[label] for label in a & b & kept)
        rows = prod(sizes[label] for label in a - b)
        columns = prod(sizes[label] for label in b - a)
        depth = prod(sizes[label] for label in (a & b) - kept)
        node.gemm = (rows, columns, depth, count)


def _labels(term: str, rank: int) -> list[str]:
    """One label for every dimension; those behind an ellipsis are numbered from the right."""
    if "..." not in term:
        return list(term)
    before, after = term.split("...")
    hidden = rank - len(before) - len(after)
    return [*before, *(str(i) for i in range(hidden - 1, -1, -1)), *after]
