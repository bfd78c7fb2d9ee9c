"""Operators by what kind of work they are: kinds that hardware and libraries treat alike."""

from __future__ import annotations

import numpy as np

from gnnperf.graph.arrays import GraphArrays
from gnnperf.graph.opgraph import OpClass

_KERNELS = ("convolution_1x1", "convolution_3x3", "convolution_other")  # dense convolutions, by their kernel
_GROUPS: dict[str, tuple[OpClass, ...]] = {
    "grouped_convolution": (OpClass.GROUPED_CONV,),
    "depthwise_convolution": (OpClass.DEPTHWISE_CONV,),
    "dense": (OpClass.GEMM,),
    "attention": (OpClass.MATMUL, OpClass.ATTENTION, OpClass.SOFTMAX),
    "normalisation": (OpClass.BATCH_NORM, OpClass.LAYER_NORM, OpClass.LRN),
    "elementwise": (OpClass.ACTIVATION, OpClass.ELEMENTWISE, OpClass.QUANTIZE),
    "pooling": (OpClass.POOLING, OpClass.GLOBAL_POOLING, OpClass.REDUCTION, OpClass.RESIZE),
    "movement": (OpClass.DATA_MOVEMENT, OpClass.EMBEDDING, OpClass.VIEW),
    "other": (OpClass.OTHER, OpClass.RECURRENT, OpClass.CLASSICAL_ML, OpClass.CONTROL_FLOW),
}
OPERATOR_GROUPS = (*_KERNELS, *_GROUPS)
"""Names of the groups, in the order of their numbers."""
# CONV itself is split by kernel; transposed convolutions go with its rest.
_GROUP_OF_CLASS = np.array(
    [
        next((len(_KERNELS) + i for i, classes in enumerate(_GROUPS.values()) if op_class in classes), 2)
        for op_class in OpClass
    ]
)


def operator_groups(graph: GraphArrays) -> np.ndarray:
    """``[N]`` position in :data:`OPERATOR_GROUPS` of each operator."""
    height, width = graph.column("kernel_h"), graph.column("kernel_w")
    by_kernel = np.where((height <= 1) & (width <= 1), 0, np.where((height == 3) & (width == 3), 1, 2))
    return np.where(graph.op_class == OpClass.CONV, by_kernel, _GROUP_OF_CLASS[graph.op_class])
