"""A network's operators as models of their own, so that each can be timed by itself as ResPerfNet's authors did."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from gnnperf.errors import MeasureError
from gnnperf.measure.models import RunnableModel

# They cost nothing at run time, or are no layer of the network.
_SKIPPED = frozenset({
    "Constant", "Identity", "Shape", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Dropout", "Cast", "Range",
    "ConstantOfShape", "If", "Loop", "Scan",
})  # fmt: skip


def single_layers(model: RunnableModel) -> Iterator[tuple[str, RunnableModel]]:
    """Name and model of every operator whose input shapes are known, in the file's order; views are left out.

    Raises:
        MeasureError: no shape inside the network can be inferred.
    """
    inferred = onnx.shape_inference.infer_shapes(_without_payloads(model.proto), data_prop=True).graph
    values = {value.name: value for value in (*inferred.input, *inferred.value_info, *inferred.output)}
    initializers = {tensor.name: tensor for tensor in model.proto.graph.initializer}
    constants = {node.output[0]: node for node in model.proto.graph.node if node.op_type == "Constant"}
    found = False
    for node in model.proto.graph.node:
        if node.op_type in _SKIPPED:
            continue
        activations = [name for name in dict.fromkeys(node.input) if name and name not in {*initializers, *constants}]
        if not activations or not all(name in values and _is_static(values[name]) for name in activations):
            continue
        found = True
        yield node.name or node.output[0], _model_of(model, node, activations, values, initializers, constants)
    if not found:
        raise MeasureError(f"{model.name}: no layer can be taken out, as the shapes inside are unknown")


def _model_of(model: RunnableModel, node: onnx.NodeProto, activations, values, initializers, constants):
    proto = onnx.ModelProto(ir_version=model.proto.ir_version)
    proto.opset_import.extend(model.proto.opset_import)
    graph = proto.graph
    graph.name = node.name or node.output[0]
    graph.input.extend(values[name] for name in activations)
    for name in dict.fromkeys(node.input):
        if name in initializers:
            graph.initializer.append(initializers[name])
        elif name in constants:
            graph.node.append(constants[name])
    graph.node.append(node)
    for name in filter(None, node.output):
        graph.output.append(values[name] if name in values else onnx.ValueInfoProto(name=name))
    return RunnableModel(f"{model.name}, {graph.name}", proto)


def _without_payloads(model: onnx.ModelProto) -> onnx.ModelProto:
    """Inference copies the model several times, which takes long with large weights in it."""
    from gnnperf.graph.reader import read_model

    return read_model(model)


def _is_static(value: onnx.ValueInfoProto) -> bool:
    tensor = value.type.tensor_type
    return tensor.HasField("shape") and all(dim.dim_value > 0 for dim in tensor.shape.dim)
