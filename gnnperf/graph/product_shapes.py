"""Output shapes of matrix products outside ai.onnx: transposed, fused, quantised, by packed weights."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from gnnperf.graph.tensor_types import Rule, Shape, TensorType
from gnnperf.graph.traced import Operator


def product_operands(operator: Operator, a: Shape, b: Shape) -> tuple[Shape, Shape]:
    """Shapes of two factors of a matrix product once they are transposed as the attributes say."""
    attributes = operator.attributes
    if attributes.get("transBatchA"):  # the first dimension goes behind the batch
        a = (*a[1:-1], a[0], a[-1])
    if attributes.get("transBatchB"):
        b = (*b[1:-1], b[0], b[-1])
    if attributes.get("transA"):
        a = (*a[:-2], a[-1], a[-2])
    if attributes.get("transB"):
        b = (*b[:-2], b[-1], b[-2])
    return a, b


def _product(second: int = 1, dtype: int | None = None) -> Rule:
    """A matrix product with its second factor at input ``second``."""

    def rule(operator: Operator) -> list[TensorType] | None:
        a, b = operator.input_shape(0), operator.input_shape(second)
        if not a or not b or min(len(a), len(b)) < 2:
            return None
        a, b = product_operands(operator, a, b)
        shape = (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])
        return [TensorType(operator.inputs[0].dtype if dtype is None else dtype, shape)]

    return rule


def _quantised_gemm(operator: Operator) -> list[TensorType] | None:
    a, b = operator.input_shape(0), operator.input_shape(3)
    if a is None or b is None:
        return None
    rows, columns = a[1 if operator.attributes.get("transA") else 0], b[0 if operator.attributes.get("transB") else 1]
    dtype = operator.inputs[0].dtype if operator.input(7) else TensorProto.FLOAT
    return [TensorType(dtype, (rows, columns))]


def packed_weight_columns(operator: Operator) -> int | None:
    """Columns that a product by packed weights has in all, None where they do not follow."""
    attributes, kind = operator.attributes, operator.op.removeprefix("com.microsoft.")
    if kind == "MatMulNBitsQkv":
        return attributes["Nq"] + 2 * attributes["Nkv"]
    if kind == "MatMulNBitsMlp":
        return 2 * attributes["N"]  # gate and up
    if kind == "MatMulFpQ4":
        return int(operator.inputs[2].value[1])
    if kind in ("MatMulBlockQuantizedFp4Weight", "MatMulBlockQuantizedFp8Weight"):
        packed = 2 if kind.endswith("Fp4Weight") and operator.inputs[1].dtype == TensorProto.UINT8 else 1
        return operator.inputs[1].elements * packed // operator.inputs[0].shape[-1]
    return attributes["N"]


def _packed_weight_product(operator: Operator) -> list[TensorType] | None:
    source = operator.inputs[0]
    if source.shape is None:
        return None
    if operator.op == "com.microsoft.MatMulNBitsQkv":
        widths = [operator.attributes[name] for name in ("Nq", "Nkv", "Nkv")]
    else:
        widths = [packed_weight_columns(operator) // (2 if operator.op == "com.microsoft.MatMulNBitsMlp" else 1)]
    types = [TensorType(source.dtype, (*source.shape[:-1], width)) for width in widths]
    return [*types, TensorType(source.dtype, source.shape)]  # the sum that was normalised


_MS = "com.microsoft."

PRODUCT_RULES: dict[str, Rule] = {
    **dict.fromkeys([_MS + "FusedMatMul", _MS + "FusedMatMulActivation", _MS + "TransposeMatMul"], _product()),
    **dict.fromkeys([_MS + "GemmFastGelu", _MS + "SparseToDenseMatMul"], _product()),
    **dict.fromkeys([_MS + "DynamicQuantizeMatMul", _MS + "MatMulIntegerToFloat"], _product(dtype=TensorProto.FLOAT)),
    _MS + "GemmFloat8": _product(dtype=TensorProto.FLOAT),
    _MS + "MatMulInteger16": _product(dtype=TensorProto.INT32),
    _MS + "QOrderedMatMul": _product(second=2),
    _MS + "QGemm": _quantised_gemm,
    **dict.fromkeys(
        (
            _MS + name
            for name in "MatMulNBits MatMulBnb4 MatMulNBitsQkv MatMulNBitsMlp MatMulNBitsQLoRA MatMulPacked MatMulFpQ4 "
            "MatMulBlockQuantizedFp4Weight MatMulBlockQuantizedFp8Weight".split()
        ),
        _packed_weight_product,
    ),
}
