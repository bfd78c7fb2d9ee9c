"""Matrix products: Gemm, MatMul, their quantised and fused forms, Einsum."""

from __future__ import annotations

from math import prod

from gnnperf.graph.opgraph import Node, OpClass
from gnnperf.graph.product_shapes import packed_weight_columns, product_operands
from gnnperf.graph.traced import Operator

_SECOND_OPERAND = {"QLinearMatMul": 3, "com.microsoft.QGemm": 3, "com.microsoft.QOrderedMatMul": 2}
_BIAS = {"Gemm": 2, "com.microsoft.FusedGemm": 2, "com.microsoft.QGemm": 6, "com.microsoft.DynamicQuantizeMatMul": 4,
         "com.microsoft.MatMulIntegerToFloat": 6, "com.microsoft.MatMulNBits": 5, "com.microsoft.GemmFloat8": 2,
         "com.microsoft.GemmFastGelu": 2, "com.microsoft.QOrderedMatMul": 5}  # fmt: skip


def matrix_product(operator: Operator, node: Node) -> None:
    """A product of two tensors; with a weight on either side it is a GEMM."""
    left, right = operator.input(0), operator.input(_SECOND_OPERAND.get(operator.op, 1))
    weighted = (left is not None and left.constant) or (right is not None and right.constant)
    node.op_class = OpClass.GEMM if weighted or operator.op in _BIAS else OpClass.MATMUL
    if left is None or right is None or not left.shape or not right.shape:
        node.resolved = False
        return
    a, b = product_operands(operator, left.shape, right.shape)
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


def packed_weight_product(operator: Operator, node: Node) -> None:
    """A product by one or several weight matrices of eight bits and fewer, packed in a form that hides their sizes.

    Operators that also normalise, activate or have a low-rank adapter count their products by the full weight alone.
    """
    node.op_class = OpClass.GEMM
    source, columns = operator.input_shape(0), packed_weight_columns(operator)
    if not source or columns is None:
        node.resolved = False
        return
    _fill(operator, node, prod(source[:-1]), columns, source[-1], 1)


def distance_matrix(operator: Operator, node: Node) -> None:
    """``com.microsoft.CDist``: every row of A against every row of B; difference, square, sum."""
    (rows, depth), (columns, _) = operator.input_shape(0), operator.input_shape(1)
    _fill(operator, node, rows, columns, depth, 1)
    node.flops = 3 * node.macs


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
