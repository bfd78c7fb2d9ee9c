"""Convolutions, pooling, resampling: operators with a window over space."""

from __future__ import annotations

from math import prod

from gnnperf.graph.dims import MAX_RANK
from gnnperf.graph.opgraph import Node, OpClass
from gnnperf.graph.shapes import is_channels_last
from gnnperf.graph.traced import Operator

_WEIGHT_POSITION = {"QLinearConv": 3, "com.microsoft.QLinearConv": 3}
_BIAS_POSITION = {"QLinearConv": 8, "com.microsoft.QLinearConv": 8, "DeformConv": 3}
_RESAMPLING_FLOPS = {"linear": 8, "bilinear": 8, "cubic": 32, "bicubic": 32}


def _window(operator: Operator, node: Node, kernel: tuple[int, ...]) -> None:
    if len(kernel) > MAX_RANK:
        raise ValueError("more kernel dimensions than a tensor can have")
    attributes, ones = operator.attributes, (1,) * len(kernel)
    node.kernel = kernel
    node.stride = tuple(attributes.get("strides") or ones)
    node.dilation = tuple(attributes.get("dilations") or ones)


def convolution(operator: Operator, node: Node) -> None:
    """A dense, grouped or depthwise convolution, also fused, quantised or deformable."""
    source, output = operator.input_shape(0), operator.output_shape
    weight = operator.input_shape(_WEIGHT_POSITION.get(operator.op, 1))
    groups = operator.attributes.get("group", 1)
    channel_axis = -1 if is_channels_last(operator) else 1
    in_channels = source[channel_axis] if source else weight[1] * groups if weight else 0
    out_channels = weight[0] if weight else output[channel_axis] if output else 0
    if weight:
        kernel = tuple(weight[2:])
    else:
        kernel = tuple(operator.attributes.get("kernel_shape", ()))
    node.op_class = OpClass.CONV
    if groups > 1:
        node.op_class = OpClass.DEPTHWISE_CONV if groups == in_channels else OpClass.GROUPED_CONV
    node.groups, node.in_channels, node.out_channels = groups, in_channels, out_channels
    _window(operator, node, kernel)
    if not output or not in_channels or not kernel or not out_channels:
        node.resolved = False
        return
    depth = in_channels // groups * prod(kernel)
    elements = prod(output)
    node.gemm = (elements // out_channels, out_channels // groups, depth, groups)
    node.macs = elements * depth
    node.flops = 2 * node.macs
    if operator.input(_BIAS_POSITION.get(operator.op, 2)) is not None and operator.op != "ConvInteger":
        node.flops += elements
    if operator.attributes.get("activation"):
        node.flops += elements


def transposed_convolution(operator: Operator, node: Node) -> None:
    """A transposed convolution: every input element is spread over a window of the output."""
    source, weight, output = operator.input_shape(0), operator.input_shape(1), operator.output_shape
    groups = operator.attributes.get("group", 1)
    node.groups = groups
    if weight:
        node.in_channels, node.out_channels = weight[0], weight[1] * groups
        _window(operator, node, tuple(weight[2:]))
    if not source or not weight:
        node.resolved = False
        return
    width = weight[1] * prod(weight[2:])
    node.gemm = (prod(source) // source[1], width, weight[0] // groups, groups)
    node.macs = prod(source) * width
    node.flops = 2 * node.macs + (prod(output) if operator.input(2) is not None and output else 0)


def pooling(operator: Operator, node: Node) -> None:
    """Max, average or Lp pooling, regions of interest included."""
    attributes = operator.attributes
    kernel = tuple(attributes.get("kernel_shape") or attributes.get("pooled_shape") or ())
    _window(operator, node, kernel)
    _channels(operator, node)
    positions = prod(kernel)
    if operator.op == "RoiAlign":
        positions = 8 * max(1, attributes.get("sampling_ratio", 0)) ** 2
    elif operator.op in ("MaxRoiPool", "MaxUnpool"):
        positions = 1
    node.flops = prod(operator.output_shape or (0,)) * positions


def global_pooling(operator: Operator, node: Node) -> None:
    """Pooling over all positions."""
    source = operator.input_shape(0)
    _channels(operator, node)
    if source:
        node.kernel = tuple(source[1:-1] if is_channels_last(operator) else source[2:])
        node.flops = prod(source)


def local_response_normalization(operator: Operator, node: Node) -> None:
    """Normalisation over neighbouring channels: square, window sum, scale, power, division."""
    _channels(operator, node)
    node.flops = prod(operator.output_shape or (0,)) * (operator.attributes.get("size", 1) + 4)


def batch_normalization(operator: Operator, node: Node) -> None:
    """Inference: one multiplication and one addition for every element."""
    _channels(operator, node)
    node.flops = 2 * prod(operator.output_shape or (0,))


def resampling(operator: Operator, node: Node) -> None:
    """Resize, Upsample and GridSample by their interpolation."""
    mode = operator.attributes.get("mode", b"linear" if "GridSample" in operator.op else b"nearest")
    _channels(operator, node)
    node.flops = prod(operator.output_shape or (0,)) * _RESAMPLING_FLOPS.get(mode.decode(), 0)


def _channels(operator: Operator, node: Node) -> None:
    source, output = operator.input_shape(0), operator.output_shape
    axis = -1 if is_channels_last(operator) else 1
    node.in_channels = source[axis] if source and len(source) > 1 else 0
    node.out_channels = output[axis] if output and len(output) > 1 else 0
