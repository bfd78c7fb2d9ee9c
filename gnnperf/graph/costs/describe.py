"""Turn a traced operator into a node of the OpGraph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

from onnx import TensorProto

from gnnperf.errors import ModelFileError
from gnnperf.graph.costs import tables
from gnnperf.graph.costs.attention import attention, linear_attention
from gnnperf.graph.costs.classical import classical
from gnnperf.graph.costs.convolution import (
    batch_normalization,
    convolution,
    global_pooling,
    local_response_normalization,
    pooling,
    resampling,
    transposed_convolution,
)
from gnnperf.graph.costs.experts import mixture_of_experts
from gnnperf.graph.costs.products import distance_matrix, einsum, matrix_product, packed_weight_product
from gnnperf.graph.costs.recurrent import recurrent
from gnnperf.graph.opgraph import Node, OpClass
from gnnperf.graph.traced import Operator

Rule = Callable[[Operator, Node], None]

_MS = "com.microsoft."
_MAX_COST = 2**100  # far beyond any network, and well inside single precision
_TRAINABLE_TYPES = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
_WEIGHTED = frozenset({
    OpClass.CONV, OpClass.GROUPED_CONV, OpClass.DEPTHWISE_CONV, OpClass.CONV_TRANSPOSE, OpClass.GEMM, OpClass.MATMUL,
    OpClass.ATTENTION, OpClass.BATCH_NORM, OpClass.LAYER_NORM, OpClass.RECURRENT, OpClass.EMBEDDING,
})  # fmt: skip


def describe(operator: Operator, counted_weights: set[str]) -> Node:
    """Cost one operator.

    Args:
        operator: a traced operator.
        counted_weights: weights whose parameters were counted before, so that a shared one counts once; extended here.

    Returns:
        The node; ``resolved`` is False, and its costs are a lower bound, where a shape is unknown.

    Raises:
        ModelFileError: a cost is absurdly large.
    """
    node = _sized_node(operator)
    rule = _RULES.get(operator.op) or _RULES_BY_CLASS.get(node.op_class)
    if rule is not None:
        try:
            rule(operator, node)
            plausible = min(_quantities(node)) >= 0
        except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError, AttributeError):
            plausible = False
        if not plausible:  # an operator that does not look as its specification says
            node = _sized_node(operator)
            node.resolved = False
    node.parameters += _parameters(operator, node, counted_weights)
    if operator.repeats > 1:
        _repeat(node, operator.repeats)
    if max(_quantities(node)) > _MAX_COST:
        raise ModelFileError(f"operator '{node.name}' ({node.op_type}) would cost more than 2**100 operations: "
                             "its attributes or the loops around it are broken")  # fmt: skip
    return node


def total_cost(operators: Iterable[Operator]) -> tuple[int, int]:
    """Operations and bytes of a list of operators, to compare branches by."""
    nodes = [describe(operator, set()) for operator in operators]
    moved = sum(node.input_bytes + node.output_bytes + node.weight_bytes for node in nodes)
    return sum(node.flops for node in nodes), moved


def _sized_node(operator: Operator) -> Node:
    node = Node(operator.node.name or _first_output(operator), operator.op, _class(operator))
    _fill_sizes(operator, node)
    return node


def _quantities(node: Node) -> tuple[int, ...]:
    return (
        node.macs, node.flops, node.input_bytes, node.output_bytes, node.weight_bytes, node.repeats, node.groups,
        node.in_channels, node.out_channels, *node.gemm, *node.kernel, *node.stride, *node.dilation,
    )  # fmt: skip


def _first_output(operator: Operator) -> str:
    return operator.outputs[0].name if operator.outputs else operator.op


def _class(operator: Operator) -> OpClass:
    if operator.op == "Gather":
        table, indices = operator.input(0), operator.input(1)
        if table is not None and table.constant and table.rank > 1 and indices is not None:
            return OpClass.EMBEDDING
    return CLASSES.get(operator.op, OpClass.OTHER)


def _fill_sizes(operator: Operator, node: Node) -> None:
    settings = tables.NOT_WEIGHTS.get(operator.op, ())
    seen: set[int] = set()
    for position, tensor in enumerate(operator.inputs):
        if tensor is None or id(tensor) in seen:
            continue
        seen.add(id(tensor))
        if not tensor.constant:
            node.input_bytes += tensor.size_bytes
        elif position not in settings:
            node.weight_bytes += tensor.size_bytes
        if tensor.shape is None and not tensor.sequence:
            node.resolved = False
    for tensor in operator.outputs:
        node.output_bytes += tensor.size_bytes
        node.output_elements += tensor.elements
        if tensor.shape is None and not tensor.sequence:
            node.resolved = False
    activation = next((tensor for tensor in operator.inputs if tensor is not None and not tensor.constant), None)
    node.input_shape = (activation.shape or ()) if activation is not None else ()
    node.output_shape = operator.output_shape or ()
    node.dtype = operator.outputs[0].dtype_name if operator.outputs else node.dtype
    if node.op_class in (OpClass.VIEW, OpClass.CONTROL_FLOW):
        node.input_bytes = node.output_bytes = node.weight_bytes = 0
    elif operator.op in tables.READS_A_PART:
        _read_a_part(operator, node)


def _read_a_part(operator: Operator, node: Node) -> None:
    source = operator.inputs[0]
    if source is None:
        return
    skipped = max(0, source.size_bytes - node.output_bytes)
    if source.constant:
        node.weight_bytes -= skipped
    else:
        node.input_bytes -= skipped


def _parameters(operator: Operator, node: Node, counted_weights: set[str]) -> int:
    settings = tables.NOT_WEIGHTS.get(operator.op, ())
    fixed = tables.NOT_TRAINED.get(operator.op, ())
    weighted = node.op_class in _WEIGHTED
    if not weighted and node.op_class not in (OpClass.ELEMENTWISE, OpClass.ACTIVATION):
        return 0
    count = 0
    for position, tensor in enumerate(operator.inputs):
        if tensor is None or not tensor.constant or position in fixed or position in settings:
            continue
        if tensor.root in counted_weights:
            continue
        trainable = tensor.dtype in _TRAINABLE_TYPES or (weighted and not (operator.op == "Gather" and position))
        if trainable and (weighted or tensor.elements > 1):
            counted_weights.add(tensor.root)
            count += tensor.elements
    return count


def _repeat(node: Node, repeats: int) -> None:
    node.repeats = repeats
    for name in ("macs", "flops", "input_bytes", "output_bytes", "weight_bytes", "output_elements"):
        setattr(node, name, getattr(node, name) * repeats)
    node.gemm = (*node.gemm[:3], node.gemm[3] * repeats)


def _per_output(flops: dict[str, int]) -> Rule:
    def rule(operator: Operator, node: Node) -> None:
        node.flops = prod(operator.output_shape) * flops[operator.op] if operator.output_shape is not None else 0

    return rule


def _per_input(flops: dict[str, int]) -> Rule:
    def rule(operator: Operator, node: Node) -> None:
        source = operator.input_shape(0)
        node.flops = prod(source) * flops[operator.op] if source is not None else 0

    return rule


def _elementwise(operator: Operator, node: Node) -> None:
    operands = max(1, len(operator.inputs) - 1) if operator.op in ("Sum", "Max", "Min", "Mean") else 1
    if operator.output_shape is not None:
        node.flops = prod(operator.output_shape) * operands * tables.ELEMENTWISE_FLOPS[operator.op]


def _embedding_layer_norm(operator: Operator, node: Node) -> None:
    """Three tables, their sum, and a layer normalisation; of the tables it reads one row for every token."""
    elements = prod(operator.output_shape)
    node.flops = 10 * elements
    node.weight_bytes = 3 * operator.outputs[0].size_bytes


_RULES: dict[str, Rule] = {
    **dict.fromkeys(["Conv", "ConvInteger", "QLinearConv", "DeformConv", "CausalConvWithState"], convolution),
    **dict.fromkeys([_MS + "FusedConv", _MS + "NhwcFusedConv", _MS + "nchwc.Conv", _MS + "NhwcConv"], convolution),
    **dict.fromkeys([_MS + "QLinearConv", _MS + "CausalConvWithState"], convolution),
    **dict.fromkeys(["ConvTranspose", _MS + "ConvTransposeWithDynamicPads"], transposed_convolution),
    **dict.fromkeys(["Gemm", "MatMul", "MatMulInteger", "QLinearMatMul"], matrix_product),
    **dict.fromkeys([_MS + "FusedGemm", _MS + "FusedMatMul", _MS + "TransposeMatMul", _MS + "QGemm"], matrix_product),
    **dict.fromkeys([_MS + "DynamicQuantizeMatMul", _MS + "MatMulIntegerToFloat"], matrix_product),
    **dict.fromkeys([_MS + "MatMulInteger16", _MS + "FusedMatMulActivation", _MS + "GemmFastGelu"], matrix_product),
    **dict.fromkeys([_MS + "GemmFloat8", _MS + "SparseToDenseMatMul", _MS + "QOrderedMatMul"], matrix_product),
    **dict.fromkeys([_MS + "MatMulNBits", _MS + "MatMulBnb4", _MS + "MatMulNBitsQkv"], packed_weight_product),
    **dict.fromkeys([_MS + "MatMulNBitsMlp", _MS + "MatMulNBitsQLoRA", _MS + "MatMulPacked"], packed_weight_product),
    **dict.fromkeys([_MS + "MatMulBlockQuantizedFp4Weight", _MS + "MatMulFpQ4"], packed_weight_product),
    _MS + "MatMulBlockQuantizedFp8Weight": packed_weight_product,
    _MS + "CDist": distance_matrix,
    **dict.fromkeys([_MS + "MoE", _MS + "QMoE"], mixture_of_experts),
    "Einsum": einsum,
    **dict.fromkeys(["LSTM", "GRU", "RNN", _MS + "DynamicQuantizeLSTM"], recurrent),
    **dict.fromkeys(["Attention", "ai.onnx.preview.FlexAttention"], attention),
    **dict.fromkeys(["LinearAttention", _MS + "LinearAttention"], linear_attention),
    **dict.fromkeys([_MS + "Attention", _MS + "QAttention", _MS + "MultiHeadAttention"], attention),
    **dict.fromkeys(
        (
            _MS + name
            for name in "DecoderAttention DecoderMaskedMultiHeadAttention DecoderMaskedSelfAttention "
            "GroupQueryAttention LongformerAttention PackedAttention PackedMultiHeadAttention "
            "PagedAttention QOrderedAttention QOrderedLongformerAttention SparseAttention".split()
        ),
        attention,
    ),
    **dict.fromkeys(["MaxPool", "AveragePool", "LpPool", "MaxUnpool", "MaxRoiPool", "RoiAlign"], pooling),
    **dict.fromkeys([_MS + "NhwcMaxPool", _MS + "MaxpoolWithMask"], pooling),
    **dict.fromkeys([_MS + "QLinearAveragePool", _MS + "nchwc.MaxPool", _MS + "nchwc.AveragePool"], pooling),
    **dict.fromkeys(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"], global_pooling),
    **dict.fromkeys([_MS + "nchwc.GlobalAveragePool", _MS + "nchwc.GlobalMaxPool"], global_pooling),
    _MS + "QLinearGlobalAveragePool": global_pooling,
    **dict.fromkeys([_MS + "EmbedLayerNormalization", _MS + "QEmbedLayerNormalization"], _embedding_layer_norm),
}
_RULES_BY_CLASS: dict[OpClass, Rule] = {
    OpClass.ACTIVATION: _per_output(tables.ACTIVATION_FLOPS),
    OpClass.ELEMENTWISE: _elementwise,
    OpClass.REDUCTION: _per_input(tables.REDUCTION_FLOPS),
    OpClass.SOFTMAX: _per_output(tables.SOFTMAX_FLOPS),
    OpClass.LAYER_NORM: _per_output(tables.NORM_FLOPS),
    OpClass.QUANTIZE: _per_output(tables.QUANTIZE_FLOPS),
    OpClass.CLASSICAL_ML: classical,
    OpClass.BATCH_NORM: batch_normalization,
    OpClass.LRN: local_response_normalization,
    OpClass.RESIZE: resampling,
}
_RULE_CLASSES: dict[Rule, OpClass] = {
    convolution: OpClass.CONV,
    transposed_convolution: OpClass.CONV_TRANSPOSE,
    matrix_product: OpClass.MATMUL,
    packed_weight_product: OpClass.GEMM,
    distance_matrix: OpClass.MATMUL,
    mixture_of_experts: OpClass.GEMM,
    einsum: OpClass.MATMUL,
    recurrent: OpClass.RECURRENT,
    attention: OpClass.ATTENTION,
    linear_attention: OpClass.ATTENTION,
    pooling: OpClass.POOLING,
    global_pooling: OpClass.GLOBAL_POOLING,
    _embedding_layer_norm: OpClass.EMBEDDING,
}
CLASSES: dict[str, OpClass] = tables.CLASS_BY_TYPE | {op: _RULE_CLASSES[rule] for op, rule in _RULES.items()}
"""Class of every known operator type, with its domain as a prefix; a Gather from a weight table is an EMBEDDING."""
