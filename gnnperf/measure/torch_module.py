"""An ONNX graph as a ``torch.nn.Module`` that runs its operators one by one, as eager PyTorch does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from gnnperf.errors import MeasureError
from gnnperf.measure.torch_operators import KNOWS_OUTPUTS, KNOWS_TRAINING, OPERATORS, NodeView

_OLDEST_OPSET = 7  # before it, operators broadcast by attributes
# Float inputs that are no weights: statistics, limits, scales, padding values.
_NOT_TRAINED = {"BatchNormalization": (3, 4), "Clip": (1, 2), "Resize": (1, 2), "Upsample": (1,), "Pad": (2,),
                "Pow": (1,), "Dropout": (1,), "Where": (1, 2)}  # fmt: skip


class _Step(NamedTuple):
    """One operator: what it calls, where its inputs are, how its outputs are called, what is not needed after it."""

    run: Callable[..., Tensor | tuple[Tensor, ...]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    finished: tuple[str, ...]
    knows_training: bool


class OnnxModule(nn.Module):
    """Forward takes the graph's inputs in their order and gives a tuple of its outputs.

    Floating-point initializers with more than one element are parameters, but for statistics of batch normalisation
    and the like, which are buffers. Tensors are let go after their last use, so peak memory is that of a written model.

    Args:
        model: with weights.

    Raises:
        MeasureError: the opset is older than 7, an operator is not written here (all such are named), or is used in an
            unusual way.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        super().__init__()
        if model.functions:
            from onnx.inliner import inline_local_functions

            model = inline_local_functions(model)
        graph = model.graph
        _refuse_unknown(graph)
        opset = max((item.version for item in model.opset_import if item.domain in ("", "ai.onnx")), default=1)
        if opset < _OLDEST_OPSET:
            raise MeasureError(
                f"the torch backend reads opset {_OLDEST_OPSET} and later, not {opset}: measure with onnxruntime"
            )
        constants = _constants(graph)
        trained = _trained(graph, constants)
        self._names: dict[str, str] = {}  # attribute of the module by name in the graph
        for number, (name, array) in enumerate(constants.items()):
            tensor = torch.from_numpy(np.array(array))
            if name in trained:
                self.register_parameter(f"weight_{number}", nn.Parameter(tensor))
                self._names[name] = f"weight_{number}"
            else:
                self.register_buffer(f"constant_{number}", tensor)
                self._names[name] = f"constant_{number}"
        self._inputs = tuple(value.name for value in graph.input)
        self._outputs = tuple(value.name for value in graph.output)
        self._steps = _steps(graph, {n: a for n, a in constants.items() if n not in trained}, self._outputs, opset)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Run the graph."""
        values: dict[str, Tensor | None] = {"": None}
        parameters, buffers = self._parameters, self._buffers
        for name, attribute in self._names.items():
            values[name] = parameters[attribute] if attribute in parameters else buffers[attribute]
        values.update(zip(self._inputs, inputs, strict=True))
        for step in self._steps:
            arguments = [values[name] for name in step.inputs]
            result = step.run(*arguments, training=self.training) if step.knows_training else step.run(*arguments)
            if isinstance(result, tuple):
                values.update(zip(step.outputs, result, strict=False))
            else:
                values[step.outputs[0]] = result
            for name in step.finished:
                del values[name]
        return tuple(values[name] for name in self._outputs)


def _refuse_unknown(graph: onnx.GraphProto) -> None:
    known = {*OPERATORS, "Constant"}
    names = (node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}" for node in graph.node)
    unknown = sorted({name for name in names if name not in known})
    if unknown:
        raise MeasureError(f"the torch backend cannot run {', '.join(unknown)}: measure with --backend onnxruntime")


def _constants(graph: onnx.GraphProto) -> dict[str, np.ndarray]:
    """Content of initializers and constants by name."""
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                value = onnx.helper.get_attribute_value(attribute)
                if attribute.name == "value":
                    found[node.output[0]] = numpy_helper.to_array(value)
                elif attribute.name in ("value_int", "value_ints"):
                    found[node.output[0]] = np.array(value, np.int64)
                elif attribute.name in ("value_float", "value_floats"):
                    found[node.output[0]] = np.array(value, np.float32)
                else:
                    raise MeasureError(f"the torch backend cannot read the constant '{node.output[0]}'")
    return found


def _trained(graph: onnx.GraphProto, constants: dict[str, np.ndarray]) -> set[str]:
    """Constants that are weights."""
    excluded = {
        node.input[position]
        for node in graph.node
        for position in _NOT_TRAINED.get(node.op_type, ())
        if position < len(node.input)
    }
    return {
        name for name, array in constants.items() if array.dtype.kind == "f" and array.size > 1 and name not in excluded
    }


def _steps(graph: onnx.GraphProto, constants: dict[str, np.ndarray], outputs: tuple[str, ...], opset: int):
    nodes = [node for node in graph.node if node.op_type != "Constant"]
    readers = Counter(name for node in nodes for name in set(node.input))
    readers.update(outputs)
    kept = {*constants, *(tensor.name for tensor in graph.initializer), ""}
    steps = []
    for node in nodes:
        known = {at: constants[name] for at, name in enumerate(node.input) if name in constants}
        run = OPERATORS[node.op_type](NodeView.of(node, known, opset))
        if node.op_type in KNOWS_OUTPUTS:
            run = partial(run, outputs=len(node.output))
        finished = []
        for name in dict.fromkeys(node.input):
            readers[name] -= 1
            if not readers[name] and name not in kept:
                finished.append(name)
        # Outputs that nobody reads, such as the indices of a pooling, may not be computed at all.
        steps.append(_Step(run, tuple(node.input), tuple(node.output), tuple(finished), node.op_type in KNOWS_TRAINING))
    return steps
