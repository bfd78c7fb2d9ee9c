"""Graphs of single convolutions and dense layers, computed from their sizes, without an ONNX model for each.

Hundreds of thousands of layers were timed; zoo, ONNX and graph reader would take minutes for them, numpy takes
seconds. What the operators are (classes, operations per element of an activation function) still comes from one layer
of each kind that goes the long way, and a test compares whole graphs.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gnnperf.errors import DataError, ModelFileError
from gnnperf.graph.arrays import FIELD, NODE_FIELDS, GraphArrays, to_arrays
from gnnperf.graph.opgraph import OpClass
from gnnperf.zoo.layers import ConvLayer, DenseLayer, parse

_ELEMENT_BYTES = 4


def is_layer(spec: str) -> bool:
    """Whether :func:`layer_arrays` can compute the graph: convolutions without groups, and dense layers."""
    return spec.startswith("dense/") or (spec.startswith("conv/") and "-g" not in spec)


def layer_arrays(specs: list[str]) -> list[GraphArrays]:
    """Graphs at batch 1 of layers for which :func:`is_layer` holds, in their order.

    Raises:
        DataError: a specification is malformed.
    """
    try:
        layers = [parse(spec) for spec in specs]
    except ModelFileError as error:
        raise DataError(str(error)) from None
    if not layers:
        return []
    fields, input_bytes = _layer_fields(layers)
    activation = _activation_fields(fields, layers)
    output_bytes = fields[:, FIELD["output_bytes"]]
    graphs = []
    for row, layer in enumerate(layers):
        op_class = OpClass.CONV if isinstance(layer, ConvLayer) else OpClass.GEMM
        if layer.activation:
            classes, node = [op_class, OpClass.ACTIVATION], np.stack([fields[row], activation[row]])
            edge_index, edge_bytes = np.array([[0], [1]], np.int32), output_bytes[row : row + 1].copy()
        else:
            classes, node = [op_class], fields[row : row + 1].copy()
            edge_index, edge_bytes = np.zeros((2, 0), np.int32), np.zeros(0)
        graphs.append(
            GraphArrays(
                np.array(classes, np.int16),
                node,
                edge_index,
                edge_bytes,
                float(input_bytes[row]),
                float(output_bytes[row]),
            )
        )
    return graphs


def _layer_fields(layers: list[ConvLayer | DenseLayer]) -> tuple[np.ndarray, np.ndarray]:
    """``[L, len(NODE_FIELDS)]`` of the convolution or product itself, and ``[L]`` bytes of its input."""

    def column(name: str, dense: int) -> np.ndarray:
        return np.array([getattr(layer, name, dense) for layer in layers], np.int64)

    conv = np.array([isinstance(layer, ConvLayer) for layer in layers])
    same = np.array([getattr(layer, "padding", "") == "same" for layer in layers])
    image, kernel, stride = column("image", 1), column("kernel", 1), column("stride", 1)
    channels, filters, bias = column("channels", 0), column("filters", 0), column("bias", 0)
    # TensorFlow's rule: "same" covers the image, "valid" stays inside it.
    size = np.where(same, -(-image // stride), (image - kernel) // stride + 1)
    outputs = filters * size**2
    depth = channels * kernel**2
    values = dict.fromkeys(NODE_FIELDS, 0) | {
        "macs": outputs * depth,
        "flops": 2 * outputs * depth + bias * outputs,
        "input_bytes": channels * image**2 * _ELEMENT_BYTES,
        "output_bytes": outputs * _ELEMENT_BYTES,
        "weight_bytes": (filters * depth + bias * filters) * _ELEMENT_BYTES,
        "output_elements": outputs,
        "gemm_m": size**2,
        "gemm_n": filters,
        "gemm_k": depth,
        "gemm_count": 1,
        "kernel_h": kernel * conv,
        "kernel_w": kernel * conv,
        "stride": stride * conv,
        "dilation": conv,
        "in_channels": channels,
        "out_channels": filters,
        "output_h": size,
        "output_w": size,
        "repeats": 1,
        "element_bytes": _ELEMENT_BYTES,
    }
    fields = np.empty((len(layers), len(NODE_FIELDS)))
    for name, value in values.items():
        fields[:, FIELD[name]] = value
    return fields, fields[:, FIELD["input_bytes"]]


def _activation_fields(fields: np.ndarray, layers: list[ConvLayer | DenseLayer]) -> np.ndarray:
    """``[L, len(NODE_FIELDS)]`` of the activation behind each layer; rows of layers without one mean nothing."""
    per_element = np.array([_flops_per_element(layer.activation) if layer.activation else 0 for layer in layers])
    activation = np.zeros_like(fields)
    for name in ("output_bytes", "output_elements", "output_h", "output_w", "repeats", "element_bytes"):
        activation[:, FIELD[name]] = fields[:, FIELD[name]]
    activation[:, FIELD["input_bytes"]] = fields[:, FIELD["output_bytes"]]
    activation[:, FIELD["flops"]] = fields[:, FIELD["output_elements"]] * per_element
    return activation


@cache
def _flops_per_element(activation: str) -> float:
    """Operations per element as the graph reader counts them."""
    from gnnperf.graph import read_graph
    from gnnperf.zoo import build

    arrays = to_arrays(read_graph(build(str(DenseLayer(1, 1, activation=activation)))))
    return float(arrays.column("flops")[1] / arrays.column("output_elements")[1])
