"""From what a user names, an ONNX file or an architecture of the zoo, to a model that a framework can execute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from gnnperf import zoo
from gnnperf.conditions import Precision
from gnnperf.datasets.graph_store import graph_key
from gnnperf.errors import GnnperfError, MeasureError, ModelFileError
from gnnperf.graph import GraphArrays, read_graph, to_arrays
from gnnperf.graph.absent_weights import move_weight_inputs
from gnnperf.graph.dims import InputDims, bind_dims, write_input_shapes
from gnnperf.graph.reader import read_model
from gnnperf.graph.rebatch import scale_batch_constants
from gnnperf.graph.trace import trace
from gnnperf.measure.rows import names_file
from gnnperf.measure.weights import fill_absent_weights

_PRECISIONS = {
    TensorProto.FLOAT: Precision.FP32,
    TensorProto.FLOAT16: Precision.FP16,
    TensorProto.DOUBLE: Precision.FP64,
}
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Network:
    """What shall be measured, not yet loaded.

    Attributes:
        name: as the user gave it: the path of a file, or a specification of the zoo.
        dims: sizes of free dimensions by name.
        input_shapes: whole shapes by input name.
    """

    name: str
    dims: Mapping[str, int] = field(default_factory=dict)
    input_shapes: Mapping[str, Shape] = field(default_factory=dict)

    @property
    def is_file(self) -> bool:
        """Whether it is a file; a name that is neither a file's nor the zoo's counts as a slip in one of the zoo's."""
        return self.name.endswith(".onnx") or (names_file(self.name) and Path(self.name).is_file())

    @property
    def shapes(self) -> str:
        """Dims and input shapes as a table keeps them, ``seq=256;x:1x3x64x64``."""
        shapes = [f"{name}:{'x'.join(map(str, shape))}" for name, shape in sorted(self.input_shapes.items())]
        return ";".join([*(f"{name}={size}" for name, size in sorted(self.dims.items())), *shapes])

    @cached_property
    def structure(self) -> GraphArrays:
        """The graph at batch 1, as the predictor sees it.

        Raises:
            ModelFileError: the file cannot be read, or the zoo has no such architecture.
        """
        if not self.is_file:
            if self.dims or self.input_shapes:
                raise ModelFileError(f"{self.name} has no free dimensions: write sizes into its name, as resnet50@160")
            return to_arrays(read_graph(zoo.build(self.name)))
        # Whole input shapes say the batch too, and so forbid another.
        batch = None if self.input_shapes else 1
        graph = read_graph(Path(self.name), batch=batch, dims=self.dims, input_shapes=self.input_shapes)
        return to_arrays(graph).at_batch(1)

    @property
    def graph_key(self) -> str:
        """Of the structure; errors as there."""
        return graph_key(self.structure)

    def load(self, batch: int) -> RunnableModel:
        """A model with weights, fixed to a batch size.

        Raises:
            ModelFileError: the file cannot be read, or the zoo has no such architecture.
            MeasureError: its weights are too large, or it fixes another batch.
        """
        if self.is_file:
            own = read_graph(Path(self.name), batch=batch, dims=self.dims, input_shapes=self.input_shapes).batch
            if own != batch:
                raise MeasureError(f"{self.name} fixes the batch to {own}: export it with a dynamic batch")
            model = _load_file(Path(self.name), batch, self.dims, self.input_shapes)
        else:
            model = zoo.build(self.name, batch)
        return RunnableModel(self.name, fill_absent_weights(model))


@dataclass(frozen=True)
class RunnableModel:
    """A model with weights and static inputs.

    Attributes:
        name: for messages.
        proto: the model.
    """

    name: str
    proto: onnx.ModelProto

    @cached_property
    def precision(self) -> Precision:
        """Number format of most of its weights."""
        counts: dict[Precision, int] = {}
        for tensor in self.proto.graph.initializer:
            if tensor.data_type in _PRECISIONS:
                format_ = _PRECISIONS[tensor.data_type]
                counts[format_] = counts.get(format_, 0) + int(np.prod(tensor.dims, dtype=np.int64))
        return max(counts, key=counts.__getitem__, default=Precision.FP32)

    def random_inputs(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Seeded inputs by name: floats normal, whole numbers 0 or 1 (rows that every table has), masks all true.

        Raises:
            MeasureError: an input is of a kind that cannot be made up.
        """
        generator = np.random.default_rng(seed)
        inputs = {}
        for value in self.proto.graph.input:
            tensor = value.type.tensor_type
            if not value.type.HasField("tensor_type") or tensor.elem_type == TensorProto.STRING:
                raise MeasureError(f"{self.name}: input '{value.name}' is no tensor of numbers, so none can be made up")
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
            shape = [dim.dim_value for dim in tensor.shape.dim]
            if dtype.kind in "iu":
                inputs[value.name] = generator.integers(0, 2, shape).astype(dtype)
            elif dtype.kind == "b":
                inputs[value.name] = np.ones(shape, dtype)
            else:
                inputs[value.name] = generator.standard_normal(shape, np.float32).astype(dtype)
        return inputs


def _load_file(path: Path, batch: int, dims: Mapping[str, int], input_shapes: Mapping[str, Shape]) -> onnx.ModelProto:
    """The file with its own weights as far as it has them, its inputs fixed."""
    structure = read_model(path)  # says in one line what is wrong with the file
    try:
        model = onnx.load(str(path))
    except Exception:  # external weights that are missing
        model = onnx.load(str(path), load_external_data=False)
    graph = model.graph
    names = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in names]
    del graph.input[:]
    graph.input.extend(inputs)
    for each in (graph, structure.graph):
        move_weight_inputs(each)
    try:
        bound = bind_dims(graph, batch, dims, input_shapes)
        if bound.fixed_batch is not None and bound.fixed_batch != batch:
            model = _at_batch(model, structure, bound)
    except GnnperfError as error:
        raise ModelFileError(f"{path}: {error}") from None
    write_input_shapes(model.graph, bound.shapes)
    del model.graph.value_info[:]
    for value in model.graph.output:  # sizes at another batch than this
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    return model


def _at_batch(model: onnx.ModelProto, structure: onnx.ModelProto, wanted: InputDims) -> onnx.ModelProto:
    """A copy whose constants spell out the wanted batch; the wanted shapes take it too."""
    own = wanted.fixed_batch
    shapes = {}
    for name, shape in wanted.shapes.items():
        axis = wanted.batch_axes.get(name)
        shapes[name] = shape if axis is None else (*shape[:axis], own, *shape[axis + 1 :])
        if axis is not None:
            wanted.shapes[name] = (*shape[:axis], wanted.batch, *shape[axis + 1 :])
    traced = trace(structure, InputDims(shapes, own, wanted.named, wanted.assumptions, wanted.batch_axes, own))
    return scale_batch_constants(model, traced, own, wanted.batch)
