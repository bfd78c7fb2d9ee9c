"""What each ONNX operator is in PyTorch: a table from operator type to a function that makes a callable of a node.

The callable takes the node's inputs (tensors, None where one is left out) and gives its output, or a tuple of them.
Sizes, axes and limits that the file holds as constants are read once; those that it computes are read at every run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import helper
from torch import Tensor

from gnnperf.errors import MeasureError

Operator = Callable[..., Tensor | tuple[Tensor, ...]]

TORCH_TYPES = {
    onnx.TensorProto.FLOAT: torch.float32, onnx.TensorProto.DOUBLE: torch.float64,
    onnx.TensorProto.FLOAT16: torch.float16, onnx.TensorProto.BFLOAT16: torch.bfloat16,
    onnx.TensorProto.INT64: torch.int64, onnx.TensorProto.INT32: torch.int32, onnx.TensorProto.INT16: torch.int16,
    onnx.TensorProto.INT8: torch.int8, onnx.TensorProto.UINT8: torch.uint8, onnx.TensorProto.BOOL: torch.bool,
}  # fmt: skip


@dataclass(frozen=True)
class NodeView:
    """A node with what the file knows of it.

    Attributes:
        op_type: the operator.
        name: for messages.
        attributes: by name.
        constants: content of the inputs that are constant and not trained, by position.
        opset: of the standard domain.
    """

    op_type: str
    name: str
    attributes: dict[str, Any]
    constants: dict[int, np.ndarray]
    opset: int

    @classmethod
    def of(cls, node: onnx.NodeProto, constants: dict[int, np.ndarray], opset: int) -> NodeView:
        """The view of a node."""
        attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        attributes = {name: v.decode() if isinstance(v, bytes) else v for name, v in attributes.items()}
        return cls(node.op_type, node.name or node.output[0], attributes, constants, opset)

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute."""
        return self.attributes.get(name, default)

    def integers(self, position: int, attribute: str) -> list[int] | None:
        """Whole numbers that are an attribute in old opsets and a constant input in new ones; None if absent."""
        if attribute in self.attributes:
            value = self.attributes[attribute]
            return [int(item) for item in np.atleast_1d(value)]
        if position in self.constants:
            return [int(item) for item in self.constants[position].reshape(-1)]
        return None

    def refuse(self, why: str) -> MeasureError:
        """The error to raise where the operator is used in a way that is not written here."""
        return MeasureError(f"{self.op_type} '{self.name}' {why}, which the torch backend does not do")


def _ints(tensor: Tensor) -> list[int]:
    return [int(value) for value in tensor.reshape(-1).tolist()]


# Convolution and pooling


def _window(node: NodeView, rank: int) -> tuple[list[int], list[int], list[int], list[int]]:
    """Strides, dilations, pads at the begin, pads at the end."""
    strides = list(node.get("strides", [1] * rank))
    dilations = list(node.get("dilations", [1] * rank))
    pads = list(node.get("pads", [0] * 2 * rank))
    return strides, dilations, pads[:rank], pads[rank:]


def _same_pads(x: Tensor, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], upper: bool):
    """Pads at begin and end that give ceil(size / stride) outputs."""
    begin, end = [], []
    for size, k, s, d in zip(x.shape[2:], kernel, strides, dilations, strict=True):
        total = max((math.ceil(size / s) - 1) * s + (k - 1) * d + 1 - size, 0)
        begin.append(total // 2 if upper else total - total // 2)
        end.append(total - begin[-1])
    return begin, end


def _torch_padding(begin: Sequence[int], end: Sequence[int]) -> list[int]:
    """As F.pad wants it: last axis first."""
    return [pad for pair in reversed(list(zip(begin, end, strict=True))) for pad in pair]


def _pads_of(node: NodeView, x: Tensor, kernel: Sequence[int]):
    strides, dilations, begin, end = _window(node, x.dim() - 2)
    automatic = node.get("auto_pad", "NOTSET")
    if automatic in ("SAME_UPPER", "SAME_LOWER"):
        begin, end = _same_pads(x, kernel, strides, dilations, automatic == "SAME_UPPER")
    return strides, dilations, begin, end


def _conv(node: NodeView) -> Operator:
    functions = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
    groups = node.get("group", 1)

    def run(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        strides, dilations, begin, end = _pads_of(node, x, weight.shape[2:])
        if begin != end:
            x, begin = F.pad(x, _torch_padding(begin, end)), [0] * len(begin)
        return functions[x.dim() - 2](x, weight, bias, strides, begin, dilations, groups)

    return run


def _conv_transpose(node: NodeView) -> Operator:
    functions = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
    if node.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or "output_shape" in node.attributes:
        raise node.refuse("derives its padding from the output's size")

    def run(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        rank = x.dim() - 2
        strides, dilations, begin, end = _window(node, rank)
        if begin != end:
            raise node.refuse("pads its two sides differently")
        extra = list(node.get("output_padding", [0] * rank))
        return functions[rank](x, weight, bias, strides, begin, extra, node.get("group", 1), dilations)

    return run


def _max_pool(node: NodeView) -> Operator:
    functions = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
    kernel = list(node.get("kernel_shape"))

    def run(x: Tensor) -> Tensor:
        strides, dilations, begin, end = _pads_of(node, x, kernel)
        if begin != end or any(2 * pad > size for pad, size in zip(begin, kernel, strict=True)):
            x, begin = F.pad(x, _torch_padding(begin, end), value=-math.inf), [0] * len(begin)
        ceil = bool(node.get("ceil_mode", 0))
        return functions[x.dim() - 2](x, kernel, strides, begin, dilations, ceil)

    return run


def _average_pool(node: NodeView) -> Operator:
    functions = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
    kernel = list(node.get("kernel_shape"))
    count_padding = bool(node.get("count_include_pad", 0))
    shares: dict[tuple, Tensor] = {}

    def run(x: Tensor) -> Tensor:
        pool = functions[x.dim() - 2]
        strides, dilations, begin, end = _pads_of(node, x, kernel)
        if any(dilation != 1 for dilation in dilations):
            raise node.refuse("is dilated")
        ceil = bool(node.get("ceil_mode", 0))
        if begin == end and all(2 * pad <= size for pad, size in zip(begin, kernel, strict=True)):
            return pool(x, kernel, strides, begin, ceil, count_padding)
        padding, spatial = _torch_padding(begin, end), tuple(x.shape[2:])
        y = pool(F.pad(x, padding), kernel, strides, 0, ceil)
        if count_padding:
            return y
        key = (spatial, x.device, x.dtype)
        if key not in shares:  # of each window that lies inside the input
            inside = torch.ones((1, 1, *spatial), dtype=x.dtype, device=x.device)
            shares[key] = pool(F.pad(inside, padding), kernel, strides, 0, ceil)
        return y / shares[key]

    return run


def _global_pool(reduce: Callable) -> Callable[[NodeView], Operator]:
    return lambda node: lambda x: reduce(x, dim=tuple(range(2, x.dim())), keepdim=True)


def _lrn(node: NodeView) -> Operator:
    size, alpha = node.get("size"), node.get("alpha", 1e-4)
    beta, bias = node.get("beta", 0.75), node.get("bias", 1.0)
    return lambda x: F.local_response_norm(x, size, alpha, beta, bias)


# Products


def _gemm(node: NodeView) -> Operator:
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    left, right = node.get("transA", 0), node.get("transB", 0)

    def run(a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
        a = a.t() if left else a
        if right and alpha == beta == 1.0 and (c is None or c.dim() == 1):
            return F.linear(a, b, c)
        product = torch.matmul(a, b.t() if right else b)
        product = product if alpha == 1.0 else alpha * product
        return product if c is None else product + (c if beta == 1.0 else beta * c)

    return run


def _einsum(node: NodeView) -> Operator:
    equation = node.get("equation")
    return lambda *inputs: torch.einsum(equation, *inputs)


# Normalisation; the last argument says whether the network trains


def _batch_norm(node: NodeView) -> Operator:
    epsilon, momentum = node.get("epsilon", 1e-5), 1 - node.get("momentum", 0.9)

    def run(x, scale, bias, mean, variance, *, training: bool) -> Tensor:
        return F.batch_norm(x, mean, variance, scale, bias, training, momentum, epsilon)

    return run


def _layer_norm(node: NodeView) -> Operator:
    epsilon, axis = node.get("epsilon", 1e-5), node.get("axis", -1)
    return lambda x, scale, bias=None: F.layer_norm(x, x.shape[axis:], scale, bias, epsilon)


def _instance_norm(node: NodeView) -> Operator:
    epsilon = node.get("epsilon", 1e-5)
    return lambda x, scale, bias: F.instance_norm(x, weight=scale, bias=bias, eps=epsilon)


def _group_norm(node: NodeView) -> Operator:
    epsilon, groups = node.get("epsilon", 1e-5), node.get("num_groups")
    return lambda x, scale, bias: F.group_norm(x, groups, scale, bias, epsilon)


def _dropout(node: NodeView) -> Operator:
    ratio = float(node.constants[1]) if 1 in node.constants else node.get("ratio", 0.5)
    return lambda x, *_, training: F.dropout(x, ratio, training)


# Activations


def _clip(node: NodeView) -> Operator:
    known = {name: node.attributes[name] for name in ("min", "max") if name in node.attributes}
    known |= {name: float(node.constants[at]) for at, name in ((1, "min"), (2, "max")) if at in node.constants}
    if known == {"min": 0.0, "max": 6.0}:
        return lambda x, *_: F.relu6(x)

    def run(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
        least, most = known.get("min", low), known.get("max", high)
        return x if least is None and most is None else torch.clamp(x, least, most)

    return run


def _gelu(node: NodeView) -> Operator:
    approximate = node.get("approximate", "none")
    return lambda x: F.gelu(x, approximate=approximate)


def _hard_sigmoid(node: NodeView) -> Operator:
    alpha, beta = node.get("alpha", 0.2), node.get("beta", 0.5)
    if math.isclose(alpha, 1 / 6, rel_tol=1e-4) and beta == 0.5:
        return F.hardsigmoid
    return lambda x: torch.clamp(alpha * x + beta, 0.0, 1.0)


def _prelu(node: NodeView) -> Operator:
    return lambda x, slope: torch.where(x < 0, slope * x, x)


def _softmax(function: Callable) -> Callable[[NodeView], Operator]:
    def make(node: NodeView) -> Operator:
        axis = node.get("axis", -1 if node.opset >= 13 else 1)
        if node.opset >= 13 or axis == -1:
            return lambda x: function(x, dim=axis)
        # Before opset 13 everything from the axis on is one.
        return lambda x: function(x.flatten(axis), dim=-1).reshape(x.shape)

    return make


def _unary(function: Callable) -> Callable[[NodeView], Operator]:
    return lambda node: function


def _with(function: Callable, **attributes: tuple[str, Any]) -> Callable[[NodeView], Operator]:
    """A function whose keyword arguments are attributes: torch's name = (ONNX's name, default)."""

    def make(node: NodeView) -> Operator:
        arguments = {name: node.get(attribute, default) for name, (attribute, default) in attributes.items()}
        return lambda x: function(x, **arguments)

    return make


def _variadic(function: Callable) -> Callable[[NodeView], Operator]:
    def run(first: Tensor, *others: Tensor) -> Tensor:
        for other in others:
            first = function(first, other)
        return first

    return lambda node: run


def _divide(node: NodeView) -> Operator:
    return lambda a, b: a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


def _power(node: NodeView) -> Operator:
    if 1 in node.constants and node.constants[1].size == 1:
        exponent = float(node.constants[1].reshape(()))
        return lambda x, _: torch.pow(x, exponent)
    return torch.pow


# Reductions


def _reduce(function: Callable) -> Callable[[NodeView], Operator]:
    def make(node: NodeView) -> Operator:
        axes, keep = node.integers(1, "axes"), bool(node.get("keepdims", 1))

        def run(x: Tensor, given: Tensor | None = None) -> Tensor:
            dims = axes if axes is not None else _ints(given) if given is not None else None
            if not dims and node.get("noop_with_empty_axes", 0):
                return x
            return function(x, dims or list(range(x.dim())), keep)

        return run

    return make


def _arg_max(node: NodeView) -> Operator:
    axis, keep = node.get("axis", 0), bool(node.get("keepdims", 1))
    return lambda x: torch.argmax(x, axis, keep)


# Shapes and data movement


def _reshape(node: NodeView) -> Operator:
    target, zero_is_zero = node.integers(1, "shape"), bool(node.get("allowzero", 0))

    def run(x: Tensor, given: Tensor | None = None) -> Tensor:
        sizes = target if target is not None else _ints(given)
        if not zero_is_zero:
            sizes = [x.shape[axis] if size == 0 else size for axis, size in enumerate(sizes)]
        return x.reshape(sizes)

    return run


def _flatten(node: NodeView) -> Operator:
    axis = node.get("axis", 1)

    def run(x: Tensor) -> Tensor:
        at = axis % max(x.dim(), 1) if axis < 0 else axis
        return x.reshape(math.prod(x.shape[:at]), -1)

    return run


def _squeeze(node: NodeView) -> Operator:
    axes = node.integers(1, "axes")

    def run(x: Tensor, given: Tensor | None = None) -> Tensor:
        dims = axes if axes is not None else _ints(given) if given is not None else None
        return torch.squeeze(x) if dims is None else torch.squeeze(x, dims)

    return run


def _unsqueeze(node: NodeView) -> Operator:
    axes = node.integers(1, "axes")

    def run(x: Tensor, given: Tensor | None = None) -> Tensor:
        dims = axes if axes is not None else _ints(given)
        rank = x.dim() + len(dims)
        for axis in sorted(axis % rank for axis in dims):
            x = x.unsqueeze(axis)
        return x

    return run


def _transpose(node: NodeView) -> Operator:
    order = node.get("perm")
    # Consumers decide whether to copy, as in PyTorch's own models.
    return lambda x: x.permute(list(order) if order is not None else list(reversed(range(x.dim()))))


def _concat(node: NodeView) -> Operator:
    axis = node.get("axis")
    return lambda *parts: torch.cat(parts, axis)


def _split(node: NodeView) -> Operator:
    axis, sizes, parts = node.get("axis", 0), node.integers(1, "split"), node.get("num_outputs")

    def run(x: Tensor, given: Tensor | None = None, *, outputs: int) -> tuple[Tensor, ...]:
        chosen = sizes if sizes is not None else _ints(given) if given is not None else None
        if chosen is None:
            chosen = -(-x.shape[axis] // (parts or outputs))
        return torch.split(x, chosen, axis)

    return run


def _slice(node: NodeView) -> Operator:
    known = [node.integers(position, name) for position, name in ((1, "starts"), (2, "ends"), (3, "axes"), (4, "none"))]

    def run(x: Tensor, *given: Tensor | None) -> Tensor:
        starts, ends, axes, steps = (
            value if value is not None else _ints(given[at]) if at < len(given) and given[at] is not None else None
            for at, value in enumerate(known)
        )
        axes, steps = axes or list(range(len(starts))), steps or [1] * len(starts)
        index = [slice(None)] * x.dim()
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
            if step < 0:
                raise node.refuse("runs backwards")
            index[axis] = slice(start, end, step)
        return x[tuple(index)]

    return run


def _gather(node: NodeView) -> Operator:
    axis = node.get("axis", 0)
    constant = node.constants.get(1)
    if constant is not None and constant.ndim == 0:
        index = int(constant)
        return lambda x, _: torch.select(x, axis, index)

    def run(x: Tensor, indices: Tensor) -> Tensor:
        if axis == 0 and x.dim() == 2 and x.is_floating_point():
            return F.embedding(indices, x)
        indices = torch.where(indices < 0, indices + x.shape[axis], indices)
        picked = torch.index_select(x, axis, indices.reshape(-1))
        at = axis % x.dim()
        return picked.reshape(*x.shape[:at], *indices.shape, *x.shape[at + 1 :])

    return run


def _expand(node: NodeView) -> Operator:
    target = node.integers(1, "shape")

    def run(x: Tensor, given: Tensor) -> Tensor:
        sizes = target if target is not None else _ints(given)
        return x.expand(torch.broadcast_shapes(x.shape, sizes))

    return run


def _tile(node: NodeView) -> Operator:
    repeats = node.integers(1, "repeats")
    return lambda x, given=None: x.repeat(repeats if repeats is not None else _ints(given))


def _pad(node: NodeView) -> Operator:
    modes = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}
    mode, pads = node.get("mode", "constant"), node.integers(1, "pads")
    if mode not in modes or 3 in node.constants:
        raise node.refuse("pads in an unusual way")
    value = float(node.constants[2]) if 2 in node.constants and node.constants[2].size else node.get("value", 0.0)

    def run(x: Tensor, given: Tensor | None = None, *_) -> Tensor:
        sizes = pads if pads is not None else _ints(given)
        rank = len(sizes) // 2
        padding = _torch_padding(sizes[:rank], sizes[rank:])
        if mode == "constant":
            return F.pad(x, padding, value=value)
        return F.pad(x, padding[: 2 * (x.dim() - 2)], modes[mode])

    return run


def _resize(node: NodeView) -> Operator:
    mode = node.get("mode", "nearest")
    if mode not in ("nearest", "linear"):
        raise node.refuse(f"interpolates with {mode}")
    corners = node.get("coordinate_transformation_mode", "half_pixel") == "align_corners"
    last = 3 if node.op_type == "Resize" else None
    scales_at = 2 if node.op_type == "Resize" and node.opset >= 11 else 1

    def run(x: Tensor, *given: Tensor | None) -> Tensor:
        rank = x.dim() - 2
        if last in node.constants and node.constants[last].size:
            size = [int(value) for value in node.constants[last].reshape(-1)[-rank:]]
        elif scales_at in node.constants and node.constants[scales_at].size:
            scales = node.constants[scales_at].reshape(-1)[-rank:]
            size = [math.floor(a * float(b)) for a, b in zip(x.shape[2:], scales, strict=True)]
        elif len(given) >= 3 and given[2] is not None and given[2].numel():
            size = _ints(given[2])[-rank:]
        else:
            raise node.refuse("computes its scales")
        if mode == "nearest":
            return F.interpolate(x, size=size, mode="nearest")
        return F.interpolate(x, size=size, mode={1: "linear", 2: "bilinear", 3: "trilinear"}[rank],
                             align_corners=corners)  # fmt: skip

    return run


def _depth_to_space(node: NodeView) -> Operator:
    if node.get("mode", "DCR") != "CRD":
        raise node.refuse("orders depth first")
    block = node.get("blocksize")
    return lambda x: F.pixel_shuffle(x, block)


def _cast(node: NodeView) -> Operator:
    target = TORCH_TYPES.get(node.get("to"))
    if target is None:
        raise node.refuse("casts to a type that PyTorch lacks")
    return lambda x: x.to(target)


def _constant_of_shape(node: NodeView) -> Operator:
    value = onnx.numpy_helper.to_array(node.get("value")) if node.get("value") is not None else np.zeros(1, np.float32)
    filling = torch.from_numpy(np.array(value).reshape(()))
    return lambda shape: torch.full(_ints(shape), filling.item(), dtype=filling.dtype, device=shape.device)


def _range(node: NodeView) -> Operator:
    return lambda start, limit, step: torch.arange(start.item(), limit.item(), step.item(), device=start.device)


def _shape(node: NodeView) -> Operator:
    start, end = node.get("start", 0), node.get("end")
    return lambda x: torch.tensor(list(x.shape)[start:end], dtype=torch.int64, device=x.device)


def _identity(node: NodeView) -> Operator:
    return lambda x: x


OPERATORS: dict[str, Callable[[NodeView], Operator]] = {
    "Conv": _conv, "ConvTranspose": _conv_transpose, "MaxPool": _max_pool, "AveragePool": _average_pool,
    "GlobalAveragePool": _global_pool(torch.mean), "GlobalMaxPool": _global_pool(torch.amax), "LRN": _lrn,
    "Gemm": _gemm, "MatMul": _unary(torch.matmul), "Einsum": _einsum,
    "BatchNormalization": _batch_norm, "LayerNormalization": _layer_norm, "InstanceNormalization": _instance_norm,
    "GroupNormalization": _group_norm, "Dropout": _dropout,
    "Relu": _unary(F.relu), "LeakyRelu": _with(F.leaky_relu, negative_slope=("alpha", 0.01)),
    "Elu": _with(F.elu, alpha=("alpha", 1.0)), "Selu": _unary(F.selu), "PRelu": _prelu, "Clip": _clip,
    "Sigmoid": _unary(torch.sigmoid), "Tanh": _unary(torch.tanh), "HardSigmoid": _hard_sigmoid,
    "HardSwish": _unary(F.hardswish), "Softplus": _unary(F.softplus), "Softsign": _unary(F.softsign),
    "Mish": _unary(F.mish), "Gelu": _gelu, "Erf": _unary(torch.erf), "Exp": _unary(torch.exp),
    "Log": _unary(torch.log), "Sqrt": _unary(torch.sqrt), "Neg": _unary(torch.neg), "Abs": _unary(torch.abs),
    "Reciprocal": _unary(torch.reciprocal), "Floor": _unary(torch.floor), "Ceil": _unary(torch.ceil),
    "Sin": _unary(torch.sin), "Cos": _unary(torch.cos), "Not": _unary(torch.logical_not),
    "Softmax": _softmax(torch.softmax), "LogSoftmax": _softmax(torch.log_softmax),
    "Add": _unary(torch.add), "Sub": _unary(torch.sub), "Mul": _unary(torch.mul), "Div": _divide, "Pow": _power,
    "Sum": _variadic(torch.add), "Max": _variadic(torch.maximum), "Min": _variadic(torch.minimum),
    "Equal": _unary(torch.eq), "Greater": _unary(torch.gt), "Less": _unary(torch.lt),
    "GreaterOrEqual": _unary(torch.ge), "LessOrEqual": _unary(torch.le), "And": _unary(torch.logical_and),
    "Or": _unary(torch.logical_or), "Where": _unary(torch.where),
    "ReduceMean": _reduce(torch.mean), "ReduceSum": _reduce(torch.sum), "ReduceMax": _reduce(torch.amax),
    "ReduceMin": _reduce(torch.amin), "ArgMax": _arg_max,
    "ReduceL2": _reduce(lambda x, dims, keep: torch.linalg.vector_norm(x, 2, dims, keep)),
    "Reshape": _reshape, "Flatten": _flatten, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Transpose": _transpose,
    "Concat": _concat, "Split": _split, "Slice": _slice, "Gather": _gather, "Expand": _expand, "Tile": _tile,
    "Pad": _pad, "Resize": _resize, "Upsample": _resize, "DepthToSpace": _depth_to_space, "Cast": _cast,
    "ConstantOfShape": _constant_of_shape, "Range": _range, "Shape": _shape, "Identity": _identity,
}  # fmt: skip

KNOWS_TRAINING = frozenset({"BatchNormalization", "Dropout"})
"""Operators that take ``training``."""

KNOWS_OUTPUTS = frozenset({"Split"})
"""Operators that take ``outputs``, the number of their outputs."""
