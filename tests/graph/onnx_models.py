"""Small ONNX models for the tests of the graph package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def value(name: str, shape: Sequence | None, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name: str, *shape: int, dtype=np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.zeros(shape, dtype), name)


def ints(name: str, *values: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence] | Sequence[onnx.ValueInfoProto],
    outputs: Sequence[str],
    initializers: Sequence[onnx.TensorProto] = (),
    opset: int = 17,
) -> onnx.ModelProto:
    if isinstance(inputs, Mapping):
        inputs = [value(name, shape) for name, shape in inputs.items()]
    graph = helper.make_graph(
        list(nodes), "net", list(inputs), [value(name, None) for name in outputs], list(initializers)
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def single(
    op_type: str,
    shapes: Mapping[str, Sequence],
    initializers: Sequence[onnx.TensorProto] = (),
    inputs: Sequence[str] | None = None,
    outputs: int = 1,
    opset: int = 17,
    **attributes,
) -> onnx.ModelProto:
    """A model of one operator that reads ``shapes`` first and ``initializers`` after, unless ``inputs`` says else."""
    names = inputs if inputs is not None else [*shapes, *(tensor.name for tensor in initializers)]
    written = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op_type, names, written, **attributes)
    return model([node], shapes, written[:1], initializers, opset)
