"""A fluent ONNX graph builder that tracks shapes itself, so that a network is written in milliseconds.

The protobuf messages are filled directly: no ``onnx.helper``, no checker, no shape inference. Weights are initializers
that carry name, dims and dtype but no payload; :func:`gnnperf.zoo.weights.fill_weights` gives them values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx

from gnnperf.errors import ModelFileError

OPSET = 20
IR_VERSION = 9

Dim = int | str
_DTYPES = {"float32": onnx.TensorProto.FLOAT, "int64": onnx.TensorProto.INT64, "bool": onnx.TensorProto.BOOL}


class Tensor(NamedTuple):
    """A value of the graph: activation or initializer."""

    name: str
    shape: tuple[Dim, ...]
    dtype: str = "float32"

    @property
    def channels(self) -> int:
        """Size of axis 1."""
        return self.shape[1]


def _pair(value: int | Sequence[int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


class GraphBuilder:
    """Grows one ONNX graph; every method adds an operator and returns its output.

    Args:
        name: graph name.
        batch: batch size; a string makes it a symbolic dimension of that name.

    Attributes:
        macs: multiply-accumulates so far, for one execution (a symbolic batch counts as 1).
        parameters: trainable elements so far (running statistics of batch normalisation are not).
        tensors: every activation by name, inputs included.
    """

    def __init__(self, name: str, batch: Dim = 1) -> None:
        self.batch = batch
        self.macs = 0
        self.parameters = 0
        self.tensors: dict[str, Tensor] = {}
        self._model = onnx.ModelProto()
        self._model.ir_version = IR_VERSION
        self._model.producer_name = "gnnperf.zoo"
        self._model.opset_import.add().version = OPSET
        self._graph = self._model.graph
        self._graph.name = name
        self._used: dict[str, int] = {}
        self._sizes: dict[str, int] = {batch: 1} if isinstance(batch, str) else {}
        self._constants: dict[tuple, Tensor] = {}

    # inputs, outputs, initializers

    def input(self, name: str, shape: Sequence[Dim], dtype: str = "float32") -> Tensor:
        """A graph input; ``shape`` is without the batch dimension."""
        tensor = Tensor(name, (self.batch, *shape), dtype)
        self._declare(self._graph.input.add(), tensor)
        self.tensors[name] = tensor
        return tensor

    def image(self, size: int, channels: int = 3) -> Tensor:
        """The input ``[batch, channels, size, size]`` of an image network."""
        return self.input("input", (channels, size, size))

    def weight(self, name: str, shape: Sequence[int], *, trainable: bool = True) -> Tensor:
        """A float initializer without payload. The part of the name behind the last dot says how to fill it."""
        proto = self._graph.initializer.add()
        proto.name, proto.data_type = name, onnx.TensorProto.FLOAT
        proto.dims.extend(shape)
        if trainable:
            self.parameters += math.prod(shape)
        return Tensor(name, tuple(shape))

    def constant(self, values: np.ndarray | float | Sequence[int]) -> Tensor:
        """A small initializer with payload: a shape, a scalar, a mask. Equal constants are stored once."""
        array = np.asarray(values)
        if array.dtype != bool:
            array = array.astype(np.float32 if array.dtype.kind == "f" else np.int64)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            proto = self._graph.initializer.add()
            proto.name = f"constant_{len(self._constants)}"
            proto.data_type = _DTYPES[array.dtype.name]
            proto.dims.extend(array.shape)
            proto.raw_data = array.tobytes()
            self._constants[key] = Tensor(proto.name, array.shape, array.dtype.name)
        return self._constants[key]

    def finish(self, *outputs: Tensor) -> onnx.ModelProto:
        """Declare the outputs and return the model."""
        for output in outputs:
            self._declare(self._graph.output.add(), output)
        return self._model

    # convolution and matrix products

    def conv(
        self,
        x: Tensor,
        out_channels: int,
        kernel: int | Sequence[int] = 1,
        *,
        stride: int = 1,
        padding: int | str | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = False,
    ) -> Tensor:
        """2-D convolution. ``padding`` is per side, per axis, or ``"same"`` (TensorFlow's, extra pixel at the end)."""
        kernel = _pair(kernel)
        pads = self._pads(x, kernel, stride, padding)
        size = self._window(x, kernel, stride, pads)
        name = self._name("conv")
        inputs = [x, self.weight(f"{name}.weight", (out_channels, x.channels // groups, *kernel))]
        if bias:
            inputs.append(self.weight(f"{name}.bias", (out_channels,)))
        out = self._node(
            "Conv", inputs, (x.shape[0], out_channels, *size), name=name,
            kernel_shape=kernel, strides=(stride, stride), pads=pads, group=groups,
        )  # fmt: skip
        self.macs += self._count(out) * x.channels // groups * math.prod(kernel)
        return out

    def linear(self, x: Tensor, out_features: int, *, bias: bool = True) -> Tensor:
        """Gemm with a weight matrix ``[out_features, in_features]``; x is ``[rows, in_features]``."""
        name = self._name("linear")
        inputs = [x, self.weight(f"{name}.weight", (out_features, x.shape[1]))]
        if bias:
            inputs.append(self.weight(f"{name}.bias", (out_features,)))
        out = self._node("Gemm", inputs, (x.shape[0], out_features), name=name, transB=1)
        self.macs += self._count(out) * x.shape[1]
        return out

    def tied_linear(self, x: Tensor, table: Tensor) -> Tensor:
        """Gemm by an existing ``[out_features, in_features]`` table, such as an embedding that the head shares."""
        out = self._node("Gemm", [x, table], (x.shape[0], table.shape[0]), transB=1)
        self.macs += self._count(out) * x.shape[1]
        return out

    def token_linear(self, x: Tensor, out_features: int) -> Tensor:
        """Linear layer over the last axis of ``[batch, tokens, features]``: MatMul and a bias Add."""
        name = self._name("linear")
        weight = self.weight(f"{name}.weight", (x.shape[-1], out_features))
        return self.add(self.matmul(x, weight), self.weight(f"{name}.bias", (out_features,)))

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """Matrix product over the last two axes; leading axes come from ``a``."""
        out = self._node("MatMul", [a, b], (*a.shape[:-1], b.shape[-1]))
        self.macs += self._count(out) * a.shape[-1]
        return out

    # normalisation

    def batch_norm(self, x: Tensor, *, epsilon: float = 1e-5) -> Tensor:
        """Inference batch normalisation over axis 1."""
        name, shape = self._name("bn"), (x.channels,)
        inputs = [x, self.weight(f"{name}.scale", shape), self.weight(f"{name}.bias", shape)]
        inputs += [self.weight(f"{name}.{part}", shape, trainable=False) for part in ("running_mean", "running_var")]
        return self._node("BatchNormalization", inputs, x.shape, name=name, epsilon=epsilon)

    def layer_norm(self, x: Tensor, *, epsilon: float = 1e-5) -> Tensor:
        """Layer normalisation over the last axis."""
        name, shape = self._name("ln"), (x.shape[-1],)
        inputs = [x, self.weight(f"{name}.scale", shape), self.weight(f"{name}.bias", shape)]
        return self._node("LayerNormalization", inputs, x.shape, name=name, axis=-1, epsilon=epsilon)

    def lrn(self, x: Tensor, *, size: int = 5, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Tensor:
        """Local response normalisation across channels."""
        return self._node("LRN", [x], x.shape, size=size, alpha=alpha, beta=beta, bias=bias)

    # activations and arithmetic

    def relu(self, x: Tensor) -> Tensor:
        """max(x, 0)."""
        return self._node("Relu", [x], x.shape)

    def relu6(self, x: Tensor) -> Tensor:
        """min(max(x, 0), 6)."""
        return self._node("Clip", [x, self.constant(0.0), self.constant(6.0)], x.shape)

    def unary(self, op_type: str, x: Tensor, **attributes: int | float) -> Tensor:
        """Any operator with one input that keeps the shape: Sigmoid, Tanh, HardSwish, Erf, Gelu, Identity ..."""
        return self._node(op_type, [x], x.shape, **attributes)

    def silu(self, x: Tensor) -> Tensor:
        """x * sigmoid(x); ONNX had no operator of its own before opset 24."""
        return self.mul(x, self.unary("Sigmoid", x))

    def hard_sigmoid(self, x: Tensor) -> Tensor:
        """relu6(x + 3) / 6 as one operator."""
        return self.unary("HardSigmoid", x, alpha=1 / 6, beta=0.5)

    def softmax(self, x: Tensor) -> Tensor:
        """Softmax over the last axis."""
        return self._node("Softmax", [x], x.shape, axis=-1)

    def add(self, a: Tensor, b: Tensor | float) -> Tensor:
        """Sum; ``b`` broadcasts to ``a``."""
        return self.binary("Add", a, b)

    def mul(self, a: Tensor, b: Tensor | float) -> Tensor:
        """Product; ``b`` broadcasts to ``a``."""
        return self.binary("Mul", a, b)

    def binary(self, op_type: str, a: Tensor, b: Tensor | float) -> Tensor:
        """Any elementwise operator with two inputs; ``b`` broadcasts to ``a``."""
        other = b if isinstance(b, Tensor) else self.constant(float(b))
        return self._node(op_type, [a, other], a.shape)

    # pooling and reductions

    def max_pool(
        self, x: Tensor, kernel: int, *, stride: int | None = None, padding: int | str = 0, ceil: bool = False
    ) -> Tensor:
        """Max pooling; ``ceil`` rounds the output size up, as in Caffe."""
        return self._pool("MaxPool", x, kernel, stride, padding, ceil)

    def average_pool(
        self, x: Tensor, kernel: int, *, stride: int | None = None, padding: int | str = 0, ceil: bool = False,
        count_padding: bool = True,
    ) -> Tensor:  # fmt: skip
        """Average pooling; ``count_padding`` divides by the whole window at the border, as PyTorch does by default."""
        return self._pool("AveragePool", x, kernel, stride, padding, ceil, count_include_pad=int(count_padding))

    def global_average_pool(self, x: Tensor) -> Tensor:
        """Mean over the spatial axes, which stay as 1 x 1."""
        return self._node("GlobalAveragePool", [x], (*x.shape[:2], 1, 1))

    def spatial_mean(self, x: Tensor) -> Tensor:
        """Mean over the spatial axes, which go: ``[batch, channels]``."""
        return self._node("ReduceMean", [x, self.constant([2, 3])], x.shape[:2], keepdims=0)

    def adaptive_average_pool(self, x: Tensor, size: int) -> Tensor:
        """PyTorch's AdaptiveAvgPool2d to ``size x size``.

        ONNX has no such operator. Where the input is a multiple of the output this is exact; elsewhere it is an
        operator of the same shapes and nearly the same cost whose values differ.
        """
        height = x.shape[2]
        if height == size:
            return x
        if height > size:
            stride = height // size
            return self.average_pool(x, height - (size - 1) * stride, stride=stride)
        shape = self.constant([size, size])
        return self._node(
            "Resize", [x, None, None, shape], (*x.shape[:2], size, size), axes=(2, 3), mode="nearest"
        )  # fmt: skip

    # data movement and views

    def concat(self, tensors: Sequence[Tensor], axis: int = 1) -> Tensor:
        """Concatenation."""
        shape = list(tensors[0].shape)
        shape[axis] = sum(t.shape[axis] for t in tensors)
        return self._node("Concat", tensors, shape, axis=axis)

    def split(self, x: Tensor, parts: int, axis: int = 1) -> list[Tensor]:
        """Equal parts along an axis."""
        shape = list(x.shape)
        shape[axis] //= parts
        name = self._name("Split")
        outputs = [Tensor(f"{name}.{part}", tuple(shape), x.dtype) for part in range(parts)]
        self._emit("Split", name, [x], outputs, {"axis": axis, "num_outputs": parts})
        return outputs

    def flatten(self, x: Tensor) -> Tensor:
        """``[batch, everything else]``."""
        return self._node("Flatten", [x], (x.shape[0], math.prod(x.shape[1:])), axis=1)

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """New shape behind the batch axis, which is kept whatever its size."""
        return self._node("Reshape", [x, self.constant([0, *shape])], (x.shape[0], *shape))

    def merge_tokens(self, x: Tensor) -> Tensor:
        """``[batch, tokens, features]`` to ``[batch * tokens, features]``."""
        batch, tokens, features = x.shape
        rows = batch * tokens if isinstance(batch, int) else f"{batch}*{tokens}"
        if isinstance(rows, str):
            self._sizes[rows] = tokens
        return self._node("Reshape", [x, self.constant([-1, features])], (rows, features))

    def split_tokens(self, x: Tensor, tokens: int) -> Tensor:
        """``[batch * tokens, features]`` to ``[batch, tokens, features]``."""
        features = x.shape[1]
        return self._node("Reshape", [x, self.constant([-1, tokens, features])], (self.batch, tokens, features))

    def transpose(self, x: Tensor, order: Sequence[int]) -> Tensor:
        """Axes in a new order."""
        return self._node("Transpose", [x], [x.shape[axis] for axis in order], perm=order)

    def channel_shuffle(self, x: Tensor, groups: int) -> Tensor:
        """Interleave the channels of ``groups`` groups (ShuffleNet)."""
        _, channels, height, width = x.shape
        grouped = self.reshape(x, (groups, channels // groups, height, width))
        return self.reshape(self.transpose(grouped, (0, 2, 1, 3, 4)), (channels, height, width))

    def gather(self, table: Tensor, indices: Tensor) -> Tensor:
        """Rows of a table."""
        return self._node("Gather", [table, indices], (*indices.shape, *table.shape[1:]))

    def select(self, x: Tensor, index: int, axis: int) -> Tensor:
        """One slice along an axis, which goes."""
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        return self._node("Gather", [x, self.constant(index)], shape, axis=axis)

    def operator(
        self, op_type: str, inputs: Sequence[Tensor], shape: Sequence[Dim], dtype: str, **attributes
    ) -> Tensor:
        """An operator that has no method of its own; the caller states the output's shape and dtype."""
        return self._node(op_type, inputs, shape, dtype=dtype, **attributes)

    # shared compounds

    def conv_bn(
        self, x: Tensor, out_channels: int, kernel: int | Sequence[int] = 1, *, stride: int = 1,
        padding: int | str | Sequence[int] | None = None, groups: int = 1, bias: bool = False,
    ) -> Tensor:  # fmt: skip
        """Convolution and batch normalisation; padding defaults to half the kernel, which keeps the size."""
        if padding is None:
            padding = [size // 2 for size in _pair(kernel)]
        return self.batch_norm(
            self.conv(x, out_channels, kernel, stride=stride, padding=padding, groups=groups, bias=bias)
        )

    def conv_bn_relu(self, x: Tensor, out_channels: int, kernel: int | Sequence[int] = 1, **options) -> Tensor:
        """Convolution, batch normalisation, ReLU; options as in :meth:`conv_bn`."""
        return self.relu(self.conv_bn(x, out_channels, kernel, **options))

    def classifier(self, x: Tensor, classes: int) -> Tensor:
        """Global average pooling and a linear layer."""
        return self.linear(self.flatten(self.global_average_pool(x)), classes)

    # internals

    def _name(self, stem: str) -> str:
        number = self._used.get(stem, 0)
        self._used[stem] = number + 1
        return f"{stem}_{number}"

    def _count(self, tensor: Tensor) -> int:
        return math.prod(self._sizes[dim] if isinstance(dim, str) else dim for dim in tensor.shape)

    def _pads(
        self, x: Tensor, kernel: tuple[int, int], stride: int, padding: int | str | Sequence[int]
    ) -> tuple[int, int, int, int]:
        if padding == "same":
            total = [max((-(-x.shape[2 + i] // stride) - 1) * stride + kernel[i] - x.shape[2 + i], 0) for i in (0, 1)]
            return total[0] // 2, total[1] // 2, total[0] - total[0] // 2, total[1] - total[1] // 2
        height, width = _pair(padding)
        return height, width, height, width

    def _window(
        self, x: Tensor, kernel: tuple[int, int], stride: int, pads: tuple[int, int, int, int], ceil: bool = False
    ) -> tuple[int, int]:
        sizes = []
        for axis in (0, 1):
            size = x.shape[2 + axis]
            room = size + pads[axis] + pads[axis + 2] - kernel[axis]
            if room < 0:
                raise ModelFileError(
                    f"a {kernel[0]}x{kernel[1]} window does not fit its {size}-pixel input: give a larger image"
                )
            steps = -(-room // stride) if ceil else room // stride
            # The last window has to start inside the input or its leading padding.
            if ceil and steps * stride >= size + pads[axis]:
                steps -= 1
            sizes.append(steps + 1)
        return sizes[0], sizes[1]

    def _pool(
        self,
        op_type: str,
        x: Tensor,
        kernel: int,
        stride: int | None,
        padding: int | str,
        ceil: bool,
        **attributes: int,
    ) -> Tensor:
        stride = kernel if stride is None else stride
        window = (kernel, kernel)
        pads = self._pads(x, window, stride, padding)
        size = self._window(x, window, stride, pads, ceil)
        return self._node(
            op_type, [x], (*x.shape[:2], *size),
            kernel_shape=window, strides=(stride, stride), pads=pads, ceil_mode=int(ceil), **attributes,
        )  # fmt: skip

    def _node(
        self, op_type: str, inputs: Sequence[Tensor | None], shape: Sequence[Dim], *, name: str | None = None,
        dtype: str | None = None, **attributes,
    ) -> Tensor:  # fmt: skip
        name = name or self._name(op_type)
        out = Tensor(f"{name}.out", tuple(shape), dtype or "float32")
        self._emit(op_type, name, inputs, [out], attributes)
        return out

    def _emit(
        self, op_type: str, name: str, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor], attributes: dict
    ) -> None:
        node = self._graph.node.add()
        node.op_type, node.name = op_type, name
        node.input.extend([tensor.name if tensor else "" for tensor in inputs])
        for out in outputs:
            node.output.append(out.name)
            self.tensors[out.name] = out
        for key, value in attributes.items():
            attribute = node.attribute.add()
            attribute.name = key
            if isinstance(value, int):
                attribute.type, attribute.i = onnx.AttributeProto.INT, value
            elif isinstance(value, float):
                attribute.type, attribute.f = onnx.AttributeProto.FLOAT, value
            elif isinstance(value, str):
                attribute.type, attribute.s = onnx.AttributeProto.STRING, value.encode()
            else:
                attribute.type = onnx.AttributeProto.INTS
                attribute.ints.extend(value)

    @staticmethod
    def _declare(proto: onnx.ValueInfoProto, tensor: Tensor) -> None:
        proto.name = tensor.name
        kind = proto.type.tensor_type
        kind.elem_type = _DTYPES[tensor.dtype]
        for size in tensor.shape:
            dim = kind.shape.dim.add()
            if isinstance(size, str):
                dim.dim_param = size
            else:
                dim.dim_value = size
