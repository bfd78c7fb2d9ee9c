"""From an ONNX file to an OpGraph."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import onnx

from gnnperf.errors import ModelFileError
from gnnperf.graph.absent_weights import move_weight_inputs
from gnnperf.graph.costs import describe
from gnnperf.graph.dims import AUDIO_CHUNK, DEFAULT_DIMS, InputDims, bind_dims
from gnnperf.graph.opgraph import Edge, Node, OpClass, OpGraph, Tensor
from gnnperf.graph.reader import read_model
from gnnperf.graph.rebatch import follows_batch, scale_batch_constants
from gnnperf.graph.trace import Trace, trace
from gnnperf.graph.traced import Operator, TracedTensor

_CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f]")
_LONGEST_MESSAGE = 1000
_INTEGER_TYPES = (onnx.TensorProto.INT64, onnx.TensorProto.INT32)


def read_graph(
    source: str | Path | bytes | onnx.ModelProto,
    *,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, tuple[int, ...]] | None = None,
    name: str | None = None,
) -> OpGraph:
    """Read an ONNX model into an OpGraph. Weights are never loaded, and may be missing.

    Args:
        source: path of an ONNX file, its content, or a loaded model (left as it is).
        batch: batch size; 1, or what the file prescribes, if not given. A batch that the file fixes is changed where
            the network allows it; where not, the file's is kept and a warning says so.
        dims: sizes of free dimensions by name, ``x[2]`` for the unnamed third dimension of input ``x``.
        input_shapes: whole shapes by input name; they may differ from what the file says.
        name: of the graph; the file's by default.

    Returns:
        The operators with their costs, and the tensors between them. Free dimensions that were not given take
        defaults, which ``assumptions`` lists.

    Raises:
        ModelFileError: the file cannot be read, holds no ONNX graph, or the sizes asked for do not fit it.
    """
    if name is None and isinstance(source, str | Path):
        name = Path(source).stem
    try:
        with _no_garbage_collection():
            model = read_model(source)
            move_weight_inputs(model.graph)
            return _read_resolved(model, name or model.graph.name or "model", batch, dims, input_shapes)
    except ModelFileError as error:
        if (message := _one_line(str(error))) != str(error):
            raise ModelFileError(message) from None
        raise
    except Exception as error:  # a file can break the specification in any way; its reader must not break on it
        label = f"'{name}'" if name else "the model"
        raise ModelFileError(
            _one_line(f"{label} breaks the ONNX specification ({error!r}): export it again")
        ) from error


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Nothing that is made while reading is garbage: looking for it takes a fifth of the time of large graphs."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _one_line(message: str) -> str:
    """The message without what names in a file may do to it: lines of their own, control characters, endless length."""
    message = " ".join(_CONTROL_CHARACTERS.sub(" ", message).split())
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}..."


def _read_resolved(model: onnx.ModelProto, name: str, batch, dims, input_shapes) -> OpGraph:
    """Build the graph; a network that does not accept a second of audio is read with one streaming chunk."""
    bound = bind_dims(model.graph, batch, dims, input_shapes)
    graph = _read_at(model, bound, name)
    if any(bound.kinds[dim] == "samples" for dim in bound.assumptions) and _unresolved(graph):
        bound = bind_dims(model.graph, batch, dims, input_shapes, DEFAULT_DIMS | {"samples": AUDIO_CHUNK})
        streaming = _read_at(model, bound, name)
        if _unresolved(streaming) < _unresolved(graph):
            return streaming
    return graph


def _unresolved(graph: OpGraph) -> int:
    return sum(not node.resolved for node in graph.nodes)


def _read_at(model: onnx.ModelProto, bound: InputDims, name: str) -> OpGraph:
    """Build the graph at given input sizes; the model is left as it is."""
    warnings: list[str] = []
    if bound.fixed_batch is not None and bound.batch != bound.fixed_batch:
        traced, bound = _at_another_batch(model, bound, warnings)
    else:
        traced = trace(model, bound)
    return _to_graph(name, traced, bound, warnings)


def _at_another_batch(model: onnx.ModelProto, wanted: InputDims, warnings: list[str]) -> tuple[Trace, InputDims]:
    """Trace at a batch size that the file does not have; at the file's own if the network does not follow."""
    own, other = wanted.fixed_batch, wanted.batch
    file_dims = InputDims(dict(wanted.shapes), own, wanted.named, wanted.assumptions, wanted.batch_axes, own)
    for name, axis in wanted.batch_axes.items():
        shape = list(wanted.shapes[name])
        shape[axis] = own
        file_dims.shapes[name] = tuple(shape)
        shape[axis] = other
        wanted.shapes[name] = tuple(shape)
    before = trace(model, file_dims)
    after = trace(scale_batch_constants(model, before, own, other), wanted)
    if follows_batch(before, after, own, other):
        return after, wanted
    warnings.append(f"the file fixes the batch to {own} and its operators do not follow another one: batch {own} is "
                    f"used instead of {other}; export it with a dynamic batch")  # fmt: skip
    return before, file_dims


def _to_graph(name: str, traced: Trace, bound: InputDims, warnings: list[str]) -> OpGraph:
    graph = OpGraph(name=name, batch=bound.batch, assumptions=dict(bound.assumptions))
    counted: set[str] = set()
    index_of: dict[int, int] = {}
    for index, operator in enumerate(traced.operators):
        index_of[id(operator)] = index
        graph.nodes.append(describe(operator, counted))
        graph.edges += _edges_into(operator, index, index_of)
    graph.inputs = [_interface(tensor.name, tensor) for tensor in traced.inputs]
    graph.outputs = [_interface(name, tensor) for name, tensor in traced.outputs]
    graph.warnings = warnings + traced.warnings + _shape_warnings(graph, bound, traced)
    return graph


def _edges_into(operator: Operator, target: int, index_of: dict[int, int]) -> list[Edge]:
    edges, seen = [], set()
    for tensor in (*operator.inputs, *operator.body_tensors):
        if tensor is None or tensor.producer is None or id(tensor) in seen:
            continue
        seen.add(id(tensor))
        source = index_of[id(tensor.producer)]
        edges.append(Edge(source, target, tensor.size_bytes, tensor.rank, tensor.dtype_name))
    return edges


def _interface(name: str, tensor: TracedTensor) -> Tensor:
    return Tensor(name, tensor.shape if tensor.shape is not None else (), tensor.dtype_name, tensor.size_bytes)


def _what_decides(traced: Trace, operator: Operator) -> str:
    """A hint, if the shape of an operator's output stands in a graph input."""
    settings = [t for t in operator.inputs if t is not None and t.dtype in _INTEGER_TYPES and t.rank <= 1]
    names = [tensor.name for tensor in settings if any(tensor is given for given in traced.inputs)]
    return f" (the content of input '{names[0]}' decides; make it a constant in the file)" if names else ""


def _hides_a_graph(operator: Operator, node: Node) -> bool:
    return node.op_class == OpClass.OTHER and any(a.HasField("g") or a.graphs for a in operator.node.attribute)


def _contradiction(operator: Operator) -> str | None:
    """Why the operator cannot run on these shapes, where that is plain to see."""
    source, weight = operator.input_shape(0), operator.input_shape(1)
    label = f"{operator.op} '{operator.node.name or operator.outputs[0].name}'"
    if operator.op == "Conv" and source and weight and len(source) > 1 and len(weight) > 1:
        wanted = weight[1] * operator.attributes.get("group", 1)
        if source[1] != wanted:
            return f"{label} cannot run: its input has {source[1]} channels, its weights are for {wanted}"
    window = operator.op in ("Conv", "MaxPool", "AveragePool", "LpPool")
    if window and operator.output_shape and source and 0 in operator.output_shape and 0 not in source:
        return f"{label} cannot run: its kernel is larger than its input of {'x'.join(map(str, source))}"
    return None


def _shape_warnings(graph: OpGraph, bound: InputDims, traced: Trace) -> list[str]:
    warnings = []
    guesses = [f"{dim} = {size}" for dim, size in graph.assumptions.items() if bound.kinds[dim] != "batch"]
    if guesses:
        warnings.append(f"free dimensions take default sizes: {', '.join(guesses)}")
    unresolved = [index for index, node in enumerate(graph.nodes) if not node.resolved]
    if unresolved:
        first = graph.nodes[unresolved[0]]
        warnings.append(f"{len(unresolved)} of {len(graph.nodes)} operators have tensors of unknown shape, from "
                        f"'{first.name}' ({first.op_type}) on: their costs are a lower bound"
                        f"{_what_decides(traced, traced.operators[unresolved[0]])}")  # fmt: skip
    if graph.unknown_operators:
        warnings.append(f"unknown operators are costed by their bytes: {', '.join(graph.unknown_operators)}")
        opaque = {op.op for op, node in zip(traced.operators, graph.nodes, strict=True) if _hides_a_graph(op, node)}
        if opaque:
            warnings.append(f"the networks inside {', '.join(sorted(opaque))} are not counted")
    impossible = next(filter(None, map(_contradiction, traced.operators)), None)
    if impossible:
        warnings.append(f"{impossible}: the file or the shapes given are wrong, and so is the figure")
    if not graph.nodes:
        warnings.append("the network computes nothing: all its operators fold into constants")
    return warnings
