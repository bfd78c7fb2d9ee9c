"""Files without weights: those that list them as graph inputs, and those that only mention them."""

from __future__ import annotations

import re

import onnx

from gnnperf.graph.dims import MAX_RANK
from gnnperf.graph.traced import Operator

_ONLY_WEIGHTS: dict[str, frozenset[int]] = {
    **dict.fromkeys(["Conv", "ConvTranspose", "InstanceNormalization", "LayerNormalization"], frozenset({1, 2})),
    **dict.fromkeys(["GroupNormalization", "RMSNormalization"], frozenset({1, 2})),
    "BatchNormalization": frozenset({1, 2, 3, 4}),
    "LSTM": frozenset({1, 2, 3, 7}),
    "GRU": frozenset({1, 2, 3}),
    "RNN": frozenset({1, 2, 3}),
    "PRelu": frozenset({1}),
}
_MAYBE_WEIGHTS: dict[str, frozenset[int]] = {
    "Gemm": frozenset({1, 2}),
    "Gather": frozenset({0}),
    **dict.fromkeys(["MatMul", "Add", "Mul", "Sub", "Div"], frozenset({0, 1})),
}
_PASSES_THROUGH = frozenset({"Transpose", "Cast", "Identity", "DequantizeLinear", "Reshape", "Unsqueeze", "Squeeze"})
_WEIGHT_NAME = re.compile(r"weight|bias|kernel|gamma|beta|running_|moving_|param|embedding|class_token|cls_token", re.I)


def move_weight_inputs(graph: onnx.GraphProto) -> None:
    """Turn graph inputs that can only be weights into initializers without content.

    An input is a weight if its shape is fixed and every operator that reads it takes a weight there. Where an
    activation could stand too (the second factor of a product), its name, or other weights among the inputs, decide.
    """
    fixed = {value.name: value for value in graph.input if _has_fixed_shape(value)}
    if len(graph.input) < 2 or not fixed:
        return
    origin = {name: name for name in fixed}
    certain, possible, excluded = set(), set(), set()
    for node in graph.node:
        for position, name in enumerate(node.input):
            source = origin.get(name)
            if source is None:
                continue
            if position == 0 and node.op_type in _PASSES_THROUGH:
                origin[node.output[0]] = source
            elif position in _ONLY_WEIGHTS.get(node.op_type, ()):
                certain.add(source)
            elif position in _MAYBE_WEIGHTS.get(node.op_type, ()):
                possible.add(source)
            else:
                excluded.add(source)
    certain -= excluded
    possible -= excluded
    first = graph.input[0].name
    weights = certain | {name for name in possible if _WEIGHT_NAME.search(name) or (certain and name != first)}
    if not weights:
        return
    for name in weights:
        tensor = fixed[name].type.tensor_type
        graph.initializer.add(name=name, data_type=tensor.elem_type, dims=[dim.dim_value for dim in tensor.shape.dim])
    inputs = [value for value in graph.input if value.name not in weights]
    del graph.input[:]
    graph.input.extend(inputs)


def _has_fixed_shape(value: onnx.ValueInfoProto) -> bool:
    tensor = value.type.tensor_type
    return tensor.HasField("shape") and all(dim.dim_value > 0 for dim in tensor.shape.dim)


def complete_weight_shapes(operator: Operator) -> None:
    """Give weights that the file only mentions the shapes that follow from the activations around them."""
    source, target = operator.input_shape(0), operator.output_shape
    if not source or not target:
        return
    for position, tensor in enumerate(operator.inputs):
        if tensor is not None and tensor.constant and tensor.shape is None:
            shape = _weight_shape(operator, position, source, target)
            tensor.shape = shape if shape is None or len(shape) <= MAX_RANK else None


def _weight_shape(
    operator: Operator, position: int, source: tuple[int, ...], target: tuple[int, ...]
) -> tuple[int, ...] | None:
    attributes, op = operator.attributes, operator.op
    if op in ("Conv", "ConvTranspose") and "kernel_shape" in attributes:
        groups = attributes.get("group", 1)
        first, second = (target[1], source[1]) if op == "Conv" else (source[1], target[1])
        return (first, second // groups, *attributes["kernel_shape"]) if position == 1 else (target[1],)
    if op == "MatMul":
        return (source[-1], target[-1])
    if op == "Gemm":
        depth = source[0 if attributes.get("transA") else 1]
        matrix = (target[1], depth) if attributes.get("transB") else (depth, target[1])
        return matrix if position == 1 else (target[1],)
    if op in ("BatchNormalization", "InstanceNormalization", "GroupNormalization", "PRelu"):
        return (source[1],)
    if op in ("LayerNormalization", "RMSNormalization"):
        return source[attributes.get("axis", -1) :]
    if op in ("Add", "Sub", "Mul", "Div"):
        return (target[-1],)
    return None
