"""The roofline: the least time that a device's published figures allow, without any training."""

from __future__ import annotations

import numpy as np

from gnnperf.conditions import Precision
from gnnperf.devices.device import Device
from gnnperf.devices.features import DEVICE_FIELDS, device_features
from gnnperf.graph.arrays import GraphArrays
from gnnperf.graph.opgraph import OpClass

_MATRIX_PRODUCTS = (
    OpClass.CONV,
    OpClass.GROUPED_CONV,
    OpClass.CONV_TRANSPOSE,
    OpClass.GEMM,
    OpClass.MATMUL,
    OpClass.ATTENTION,
    OpClass.RECURRENT,
)
_BYTES = {Precision.FP32: 4, Precision.FP16: 2, Precision.FP64: 8}


def roofline_ms(arrays: GraphArrays, device: Device, precision: Precision = Precision.FP32) -> np.ndarray:
    """``[N]`` lower bounds in ms, one for each operator: max(FLOPs / peak, bytes / bandwidth), 0 for views.

    Williams, Waterman, Patterson: Roofline: an insightful visual performance model for multicore architectures.
    Communications of the ACM 52(4), 2009.
    """
    return np.maximum(*compute_and_memory_ms(arrays, device, precision))


def graph_roofline_ms(arrays: GraphArrays, device: Device, precision: Precision = Precision.FP32) -> float:
    """Lower bound in ms for the graph whose operators run one after the other: the sum of :func:`roofline_ms`."""
    return float(roofline_ms(arrays, device, precision).sum())


def compute_and_memory_ms(
    arrays: GraphArrays, device: Device, precision: Precision = Precision.FP32
) -> tuple[np.ndarray, np.ndarray]:
    """``[N]`` ms at the peak and ``[N]`` ms at the memory bandwidth; both 0 for views.

    At FP16, matrix products run at the tensor cores' peak; at FP32 they do not (TF32 is not FP32).
    """
    feature = dict(zip(DEVICE_FIELDS, device_features(device, precision), strict=True))
    peak = np.full(arrays.num_nodes, feature["peak_flops"])
    if precision == Precision.FP16:
        peak[np.isin(arrays.op_class, _MATRIX_PRODUCTS)] = feature["tensor_flops"]
    runs = arrays.op_class != OpClass.VIEW
    compute_ms = 1e3 * arrays.column("flops") / peak
    memory_ms = 1e3 * memory_bytes(arrays, precision) / feature["bandwidth_bytes_s"]
    return compute_ms * runs, memory_ms * runs


def memory_bytes(arrays: GraphArrays, precision: Precision = Precision.FP32) -> np.ndarray:
    """``[N]`` bytes that each operator moves if every tensor, weights among them, passes through memory once.

    Single-precision tensors take the precision's width; those of other types stay as the file has them.
    """
    total = arrays.column("input_bytes") + arrays.column("output_bytes") + arrays.column("weight_bytes")
    width = np.where(arrays.column("element_bytes") == 4, _BYTES[precision] / 4, 1.0)
    return total * width
