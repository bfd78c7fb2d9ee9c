"""Walk a network in execution order: resolve every tensor, fold what costs nothing, unroll control flow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper

from gnnperf.errors import ModelFileError
from gnnperf.graph.absent_weights import complete_weight_shapes
from gnnperf.graph.bounds import LARGEST
from gnnperf.graph.dims import MAX_RANK, MAX_TENSOR_ELEMENTS, InputDims
from gnnperf.graph.sequences import sequence_items
from gnnperf.graph.shapes import OperatorInference, infer_types
from gnnperf.graph.tensor_types import TensorType, tensor_type
from gnnperf.graph.traced import Operator, TracedTensor, qualified_name
from gnnperf.graph.values import constant_value, evaluate, tensor_value

_UNBOUNDED_TRIPS = 2**31 - 1  # exporters give the largest int32 or int64 to a loop that ends by its condition
_FIRST_OPSET_OF_SCAN_WITHOUT_BATCH = 9
_KEPT_VALUE_BYTES = 2**26  # of shape arithmetic; a thousand times what large networks have
_PASSES_THROUGH = frozenset({"Identity", "Dropout", "com.microsoft.BiasDropout"})
_RANDOM = frozenset({"RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"})
_KEEPS_WEIGHT_FORM = frozenset(
    {"Identity", "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "DequantizeLinear"}
    | {"com.microsoft.DequantizeLinear"}
)


@dataclass
class Trace:
    """A network as the operators that run, in execution order, with resolved tensors."""

    operators: list[Operator] = field(default_factory=list)
    inputs: list[TracedTensor] = field(default_factory=list)
    outputs: list[tuple[str, TracedTensor]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def trace(model: onnx.ModelProto, dims: InputDims) -> Trace:
    """Trace a model whose inputs have the shapes in ``dims``.

    Raises:
        ModelFileError: the graph has a cycle, or a tensor would be absurdly large.
    """
    tracer = _Tracer(model, dims)
    graph = model.graph
    scope = tracer.main_scope
    for value in graph.input:
        kind = tensor_type(value.type)
        scope[value.name] = TracedTensor(value.name, kind.dtype, dims.shapes.get(value.name), sequence=kind.sequence)
        if value.type.HasField("sequence_type"):
            item = tensor_type(value.type.sequence_type.elem_type, dims.named)
            scope[value.name].item = TracedTensor(value.name, item.dtype, item.shape, sequence=item.sequence)
        tracer.result.inputs.append(scope[value.name])
    tracer.run(graph, scope, repeats=1)
    result = tracer.result
    result.outputs = [(value.name, scope[value.name]) for value in graph.output]
    _drop_dead(result)
    return result


class _Scope(dict):
    """Tensors by name; a body sees the tensors around it, and an undefined name is a weight that the file lacks."""

    def __init__(self, parent: _Scope | None = None, declared: dict[str, TensorType] | None = None) -> None:
        super().__init__()
        self.parent = parent
        self.declared = declared or {}

    def __missing__(self, name: str) -> TracedTensor:
        if self.parent is not None:
            return self.parent[name]
        kind = self.declared.get(name) or TensorType(TensorProto.FLOAT, None)
        tensor = self[name] = TracedTensor(name, kind.dtype, kind.shape, constant=True, root=name)
        return tensor


class _Tracer:
    def __init__(self, model: onnx.ModelProto, dims: InputDims) -> None:
        self.result = Trace()
        self.inference = OperatorInference(model)
        self.types = infer_types(model, dims.shapes)
        self.named = dims.named
        self.value_bytes = 0
        graph = model.graph
        # What the file says about inner tensors: may be stale, so it is asked last.
        self.declared = {v.name: v for values in (graph.value_info, graph.output) for v in values}
        self.main_scope = _Scope(declared={v.name: tensor_type(v.type, self.named) for v in graph.value_info})

    def run(self, graph: onnx.GraphProto, scope: _Scope, repeats: int) -> None:
        """Append the operators of a graph or of a control-flow body."""
        for tensor in graph.initializer:
            scope[tensor.name] = _stored_tensor(tensor.name, tensor, tensor_value(tensor))
        for node in _in_execution_order(graph):
            if not node.output:  # it computes nothing
                continue
            try:
                control = _CONTROL_FLOW.get(node.op_type)
                if control is not None and not node.domain:
                    control(self, node, scope, repeats)
                elif node.op_type == "Constant" and not node.domain:
                    self._constant(node, scope)
                else:
                    self._operator(node, scope, repeats)
            except (IndexError, KeyError, TypeError, ValueError, AttributeError) as error:
                raise ModelFileError(
                    f"operator '{node.name or node.output[0]}' ({node.op_type}) is not as ONNX specifies it "
                    f"({error!r}): export the model again"
                ) from error

    def _constant(self, node: onnx.NodeProto, scope: _Scope) -> None:
        value, name = constant_value(node), node.output[0]
        if isinstance(value, onnx.TensorProto):
            scope[name] = _stored_tensor(name, value, None)
        elif value is None:
            scope[name] = TracedTensor(name, constant=True, root=name)
        else:
            scope[name] = _constant_tensor(name, value)

    def _operator(self, node: onnx.NodeProto, scope: _Scope, repeats: int) -> None:
        inputs = [scope[name] if name else None for name in node.input]
        op = qualified_name(node)
        operator = Operator(node, op, inputs, [], repeats)
        if op in _PASSES_THROUGH and inputs and inputs[0] is not None and not _trains(operator):
            scope[node.output[0]] = inputs[0]
            for name in node.output[1:]:
                scope[name] = TracedTensor(name, TensorProto.BOOL, inputs[0].shape, constant=True, root=name)
            return
        values = evaluate(operator) if self.value_bytes < _KEPT_VALUE_BYTES else None
        if values is not None:
            self.value_bytes += sum(value.nbytes for value in values)
            for name, value in zip(node.output, values, strict=False):
                scope[name] = _constant_tensor(name, value)
            return
        # CastLike takes of its second input the type alone.
        present = [tensor for tensor in (inputs[:1] if op == "CastLike" else inputs) if tensor is not None]
        constant = bool(present) and op not in _RANDOM and all(tensor.constant for tensor in present)
        operator.outputs = self._outputs(operator, scope, None if constant else operator)
        for tensor in operator.outputs:
            scope[tensor.name] = tensor
            if constant:
                tensor.constant = True
                self._keep_weight_identity(operator, tensor)
        if constant or (
            op in ("Cast", "CastLike") and present[0].dtype == operator.outputs[0].dtype != TensorProto.UNDEFINED
        ):
            if not constant:
                scope[node.output[0]] = present[0]
            return
        if any(tensor.constant and tensor.shape is None for tensor in present):
            complete_weight_shapes(operator)
        self.result.operators.append(operator)

    def _outputs(self, operator: Operator, scope: _Scope, producer: Operator | None) -> list[TracedTensor]:
        names = operator.node.output
        known: list[TensorType | None] = [None] * len(names)
        if scope is self.main_scope:
            known = [self.types.pop(name, None) for name in names]
        if any(name and (kind is None or kind.shape is None) for name, kind in zip(names, known, strict=True)):
            inferred = self.inference.infer(operator) or []
            for position, kind in enumerate(inferred[: len(names)]):
                if known[position] is None or (known[position].shape is None and not known[position].sequence):
                    known[position] = kind if kind.dtype or known[position] is None else known[position]
        if operator.op in LARGEST and any(kind is None or kind.shape is None for kind in known):
            known = self._largest(operator) or known
        tensors = []
        for name, kind in zip(names, known, strict=True):
            if not name:
                continue
            if kind is None or (kind.shape is None and not kind.sequence):
                kind = self._declared_type(name, scope) or kind or TensorType(TensorProto.UNDEFINED, None)
            tensor = TracedTensor(name, kind.dtype, kind.shape, producer, sequence=kind.sequence)
            if kind.sequence:
                tensor.items = sequence_items(operator)
            _check_size(tensor)
            tensors.append(tensor)
        return tensors

    def _largest(self, operator: Operator) -> list[TensorType] | None:
        """Types of the outputs if the data that they depend on leaves nothing out."""
        kinds = LARGEST[operator.op](operator)
        if kinds is None or len(kinds) < len(operator.node.output):
            return None
        label = operator.node.name or operator.node.output[0]
        self.result.warnings.append(f"what {operator.op} '{label}' finds depends on data: the most that it can find is "
                                    f"assumed, shape {list(kinds[0].shape)}")  # fmt: skip
        return kinds[: len(operator.node.output)]

    def _declared_type(self, name: str, scope: _Scope) -> TensorType | None:
        value = self.declared.get(name) if scope is self.main_scope else None
        return tensor_type(value.type, self.named) if value is not None else None

    @staticmethod
    def _keep_weight_identity(operator: Operator, tensor: TracedTensor) -> None:
        """A weight stays the same weight, and as small, when it is only dequantised or rearranged."""
        source = operator.inputs[0]
        tensor.root = tensor.name
        if source is not None and source.root and source.elements == tensor.elements:
            tensor.root = source.root
            if operator.op in _KEEPS_WEIGHT_FORM:
                tensor.stored_bytes = source.size_bytes

    def if_(self, node: onnx.NodeProto, scope: _Scope, repeats: int) -> None:
        """Run the branch that the condition names, or the more expensive one where it is not known."""
        condition = scope[node.input[0]]
        bodies = {attribute.name: attribute.g for attribute in node.attribute}
        if condition.value is not None:
            body = bodies["then_branch" if condition.value.reshape(-1)[0] else "else_branch"]
            for name, tensor in zip(node.output, self._body(body, scope, repeats, {}), strict=False):
                scope[name] = tensor
            return
        from gnnperf.graph.costs import total_cost

        operators, warnings = self.result.operators, self.result.warnings
        mark, warned = len(operators), len(warnings)
        best: tuple | None = None
        for branch in ("then_branch", "else_branch"):
            outputs = self._body(bodies[branch], scope, repeats, {})
            body_operators, body_warnings = operators[mark:], warnings[warned:]
            del operators[mark:], warnings[warned:]
            cost = total_cost(body_operators)
            if best is None or cost > best[0]:
                best = (cost, branch.split("_")[0], outputs, body_operators, body_warnings)
        _, branch, outputs, body_operators, body_warnings = best
        operators += body_operators
        warnings += body_warnings
        warnings.append(f"If '{node.name or node.output[0]}' depends on data: its more expensive branch "
                        f"('{branch}', {len(body_operators)} operators) is counted")  # fmt: skip
        self._merge(node, scope, repeats, outputs, [TensorType(t.dtype, t.shape, t.sequence) for t in outputs])

    def loop(self, node: onnx.NodeProto, scope: _Scope, repeats: int) -> None:
        """Run the body as often as the trip count says, once where it is not known."""
        inputs = [scope[name] if name else None for name in node.input]
        body = helper.get_attribute_value(node.attribute[0])
        limit = inputs[0].value if inputs[0] is not None else None
        trips = int(limit.reshape(-1)[0]) if limit is not None else None
        if trips is not None and trips >= _UNBOUNDED_TRIPS:
            trips = None
        carried = inputs[2:]
        if trips is None:
            self.result.warnings.append(f"how often Loop '{node.name or node.output[0]}' runs is not known: once is "
                                        "counted")  # fmt: skip
        trips = max(1, 1 if trips is None else trips)
        names = [value.name for value in body.input]
        arguments = {names[0]: TracedTensor(names[0], TensorProto.INT64, ())} if names else {}
        if len(names) > 1:
            arguments[names[1]] = TracedTensor(names[1], TensorProto.BOOL, ())
        for name, tensor in zip(names[2:], carried, strict=False):
            arguments[name] = _body_argument(name, tensor, tensor.shape)
        outputs = self._body(body, scope, repeats * trips, arguments)[1:]
        kinds = [TensorType(t.dtype, t.shape, t.sequence) for t in outputs[: len(carried)]]
        for tensor in outputs[len(carried) :]:
            kinds.append(TensorType(tensor.dtype, None if tensor.shape is None else (trips, *tensor.shape)))
        self._merge(node, scope, repeats, outputs, kinds)

    def scan(self, node: onnx.NodeProto, scope: _Scope, repeats: int) -> None:
        """Run the body once for every slice of the scanned inputs."""
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        body, scanned = attributes["body"], attributes["num_scan_inputs"]
        if self.inference.versions.get("", _FIRST_OPSET_OF_SCAN_WITHOUT_BATCH) < _FIRST_OPSET_OF_SCAN_WITHOUT_BATCH:
            self._batched_scan(node, body, scanned, scope, repeats)
            return
        inputs = [scope[name] for name in node.input if name]
        states, sequences = inputs[: len(inputs) - scanned], inputs[len(inputs) - scanned :]
        axes = attributes.get("scan_input_axes") or [0] * len(sequences)
        names = [value.name for value in body.input]
        arguments = {n: _body_argument(n, t, t.shape) for n, t in zip(names, states, strict=False)}
        trips = None
        for name, tensor, axis in zip(names[len(states) :], sequences, axes, strict=False):
            shape = tensor.shape
            if shape:
                trips = shape[axis]
                axis %= len(shape)
                shape = shape[:axis] + shape[axis + 1 :]
            arguments[name] = _body_argument(name, tensor, shape)
        if trips is None:
            self.result.warnings.append(f"how often Scan '{node.name or node.output[0]}' runs is not known: once is "
                                        "counted")  # fmt: skip
        trips = trips or 1
        outputs = self._body(body, scope, repeats * trips, arguments)
        kinds = [TensorType(t.dtype, t.shape) for t in outputs[: len(states)]]
        stacked = outputs[len(states) :]
        for tensor, axis in zip(stacked, attributes.get("scan_output_axes") or [0] * len(stacked), strict=False):
            shape = tensor.shape
            if shape is not None:
                axis %= len(shape) + 1
                shape = (*shape[:axis], trips, *shape[axis:])
            kinds.append(TensorType(tensor.dtype, shape))
        self._merge(node, scope, repeats, outputs, kinds)

    def _batched_scan(
        self, node: onnx.NodeProto, body: onnx.GraphProto, scanned: int, scope: _Scope, repeats: int
    ) -> None:
        """Scan in opset 8: behind the sequence lengths, all tensors have a batch axis that the body does not see."""
        inputs = [scope[name] for name in node.input[1:]]
        names = [value.name for value in body.input]
        states = len(inputs) - scanned
        batch, length = inputs[-1].shape[:2]
        arguments = {}
        for position, (name, tensor) in enumerate(zip(names, inputs, strict=True)):
            arguments[name] = _body_argument(name, tensor, tensor.shape[1 if position < states else 2 :])
        outputs = self._body(body, scope, repeats * batch * length, arguments)
        kinds = []
        for position, tensor in enumerate(outputs):
            leading = (batch,) if position < states else (batch, length)
            kinds.append(TensorType(tensor.dtype, None if tensor.shape is None else (*leading, *tensor.shape)))
        self._merge(node, scope, repeats, outputs, kinds)

    def sequence_map(self, node: onnx.NodeProto, scope: _Scope, repeats: int) -> None:
        """Run the body once for every tensor of the first sequence, each as large as the first of them."""
        inputs = [scope[name] for name in node.input]
        body = node.attribute[0].g
        items = inputs[0].items
        if not items:
            self.result.warnings.append(f"how often SequenceMap '{node.name or node.output[0]}' runs is not known: "
                                        "once is counted")  # fmt: skip
        arguments = {}
        for value, tensor in zip(body.input, inputs, strict=False):
            source = tensor.items[0] if tensor.items else tensor.item or tensor
            arguments[value.name] = _body_argument(value.name, source, source.shape)
        outputs = self._body(body, scope, repeats * len(items or (0,)), arguments)
        self._merge(node, scope, repeats, outputs, [TensorType(tensor.dtype, None, True) for tensor in outputs])
        for name, tensor in zip(node.output, outputs, strict=False):
            if name:
                scope[name].item = tensor
                scope[name].items = None if items is None else (tensor,) * len(items)

    def _body(self, body: onnx.GraphProto, scope: _Scope, repeats: int, arguments: dict[str, TracedTensor]):
        inner = _Scope(scope)
        inner.update(arguments)
        self.run(body, inner, repeats)
        return [inner[value.name] for value in body.output]

    def _merge(self, node, scope: _Scope, repeats: int, body_tensors: list[TracedTensor], kinds) -> None:
        """Append the control-flow operator itself: it hands the body's results on."""
        inputs = [scope[name] if name else None for name in node.input]
        operator = Operator(node, node.op_type, inputs, [], repeats, body_tensors)
        for name, kind in zip(node.output, kinds, strict=False):
            if name:
                tensor = TracedTensor(name, kind.dtype, kind.shape, operator, sequence=kind.sequence)
                operator.outputs.append(tensor)
                scope[name] = tensor
        self.result.operators.append(operator)


_CONTROL_FLOW = {
    "If": _Tracer.if_,
    "Loop": _Tracer.loop,
    "Scan": _Tracer.scan,
    "SequenceMap": _Tracer.sequence_map,
}


def _stored_tensor(name: str, tensor: onnx.TensorProto, value: np.ndarray | None) -> TracedTensor:
    stored = TracedTensor(name, tensor.data_type, tuple(tensor.dims), constant=True, value=value, root=name)
    if any(size < 0 for size in stored.shape):
        raise ModelFileError(f"weight '{name}' has a negative size: the file is damaged, export it again")
    _check_size(stored)
    return stored


def _check_size(tensor: TracedTensor) -> None:
    if tensor.rank > MAX_RANK:  # before they are multiplied: a product of thousands takes minutes
        raise ModelFileError(f"tensor '{tensor.name}' would have more than {MAX_RANK} dimensions")
    if tensor.elements > MAX_TENSOR_ELEMENTS:
        raise ModelFileError(f"tensor '{tensor.name}' would have more than 2**45 elements: give smaller dimensions")


def _constant_tensor(name: str, value: np.ndarray) -> TracedTensor:
    dtype = TensorProto.STRING if value.dtype == object else helper.np_dtype_to_tensor_dtype(value.dtype)
    return TracedTensor(name, dtype, value.shape, constant=True, value=value, root=name)


def _body_argument(name: str, tensor: TracedTensor, shape: tuple[int, ...] | None) -> TracedTensor:
    """What a body sees of a tensor: another content in every round, so never a constant."""
    return TracedTensor(name, tensor.dtype, shape, tensor.producer, sequence=tensor.sequence)


def _trains(operator: Operator) -> bool:
    """Whether a Dropout is told to work as in training."""
    mode = operator.input(2) if operator.op == "Dropout" else None
    return mode is not None and mode.value is not None and bool(mode.value.reshape(-1)[0])


def _read_names(node: onnx.NodeProto) -> Iterable[str]:
    """Names that a node reads, itself or in its bodies."""
    return (*node.input, *_captured_names(node)) if node.op_type in _CONTROL_FLOW else node.input


def _captured_names(node: onnx.NodeProto) -> Iterable[str]:
    """Names that the bodies of a control-flow node read, their own among them."""
    for attribute in node.attribute:
        for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            for value in body.output:
                yield value.name
            for inner in body.node:
                yield from inner.input
                yield from _captured_names(inner)


def _in_execution_order(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """The nodes, every one after those whose outputs it reads; files are meant to be like this, some are not."""
    nodes = list(graph.node)
    written = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    if all(written.get(name, -1) < index for index, node in enumerate(nodes) for name in _read_names(node)):
        return nodes
    waits, readers = [], [[] for _ in nodes]
    for index, node in enumerate(nodes):
        sources = {written[name] for name in _read_names(node) if name in written} - {index}
        waits.append(len(sources))
        for source in sources:
            readers[source].append(index)
    ready = [index for index, count in enumerate(waits) if not count]
    for index in ready:
        for reader in readers[index]:
            waits[reader] -= 1
            if not waits[reader]:
                ready.append(reader)
    if len(ready) < len(nodes) or any(name in node.output for node in nodes for name in node.input):
        raise ModelFileError("the graph has a cycle: an operator reads what is computed from its own output")
    return [nodes[index] for index in ready]


def _drop_dead(result: Trace) -> None:
    """Remove operators that no output depends on."""
    live = {id(tensor.producer) for _, tensor in result.outputs}
    kept = []
    for operator in reversed(result.operators):
        if id(operator) in live:
            kept.append(operator)
            for tensor in (*operator.inputs, *operator.body_tensors):
                if tensor is not None:
                    live.add(id(tensor.producer))
    result.operators = kept[::-1]
