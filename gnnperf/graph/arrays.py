"""OpGraph -> arrays: the only form in which the network, the graph store and the baselines see a graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gnnperf.graph.opgraph import OpClass, OpGraph

NODE_FIELDS = (
    "macs",
    "flops",
    "input_bytes",
    "output_bytes",
    "weight_bytes",
    "output_elements",
    "gemm_m",
    "gemm_n",
    "gemm_k",
    "gemm_count",
    "kernel_h",
    "kernel_w",
    "stride",
    "dilation",
    "in_channels",
    "out_channels",
    "output_h",
    "output_w",
    "repeats",
    "element_bytes",
)
FIELD = {name: index for index, name in enumerate(NODE_FIELDS)}
_BATCH_LINEAR = [FIELD[n] for n in ("macs", "flops", "input_bytes", "output_bytes", "output_elements")]

_ELEMENT_BYTES = {
    "float64": 8,
    "int64": 8,
    "uint64": 8,
    "float16": 2,
    "bfloat16": 2,
    "int16": 2,
    "uint16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
    "int4": 0.5,
    "uint4": 0.5,
    "float4e2m1": 0.5,
    "int2": 0.25,
    "uint2": 0.25,
    **dict.fromkeys(("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0"), 1),
}


@dataclass
class GraphArrays:
    """A graph as arrays; N operators, E tensors.

    Attributes:
        op_class: ``[N]`` int16, values of :class:`OpClass`.
        node: ``[N, len(NODE_FIELDS)]`` float64, raw physical quantities (counts, bytes, sizes; nothing scaled).
        edge_index: ``[2, E]`` int32, source and target operator.
        edge_bytes: ``[E]`` float64, size of the tensor.
        input_bytes: bytes that enter the graph.
        output_bytes: bytes that leave the graph.
        batch: the batch size that the quantities hold for.
    """

    op_class: np.ndarray
    node: np.ndarray
    edge_index: np.ndarray
    edge_bytes: np.ndarray
    input_bytes: float
    output_bytes: float
    batch: int = 1

    @property
    def num_nodes(self) -> int:
        """Number of operators."""
        return len(self.op_class)

    def column(self, name: str) -> np.ndarray:
        """``[N]`` values of one of :data:`NODE_FIELDS`."""
        return self.node[:, FIELD[name]]

    def at_batch(self, batch: int) -> GraphArrays:
        """The same graph at another batch size, exact for graphs whose activations are all linear in the batch.

        The batch multiplies a weighted product's rows and an activation product's count; weights stay, but for the rows
        that are looked up in tables.
        """
        factor = batch / self.batch
        node = self.node.copy()
        node[:, _BATCH_LINEAR] *= factor
        batched = (self.op_class == OpClass.MATMUL) | (self.op_class == OpClass.ATTENTION)
        node[~batched, FIELD["gemm_m"]] *= factor
        node[batched, FIELD["gemm_count"]] *= factor
        node[self.op_class == OpClass.EMBEDDING, FIELD["weight_bytes"]] *= factor
        return GraphArrays(
            self.op_class,
            node,
            self.edge_index,
            self.edge_bytes * factor,
            self.input_bytes * factor,
            self.output_bytes * factor,
            batch,
        )


def to_arrays(graph: OpGraph) -> GraphArrays:
    """Featurise an OpGraph. Exact and cheap: no scaling, no logarithms (the network does that)."""
    count = len(graph.nodes)
    node = np.zeros((count, len(NODE_FIELDS)))
    op_class = np.empty(count, np.int16)
    for row, item in enumerate(graph.nodes):
        op_class[row] = item.op_class
        kernel, output = item.kernel, item.output_shape
        node[row] = (
            item.macs, item.flops, item.input_bytes, item.output_bytes, item.weight_bytes, item.output_elements,
            *item.gemm,
            kernel[0] if kernel else 0, kernel[-1] if kernel else 0,
            item.stride[-1] if item.stride else 0, item.dilation[-1] if item.dilation else 0,
            item.in_channels, item.out_channels,
            output[2] if len(output) > 2 else 1, output[3] if len(output) > 3 else 1,
            item.repeats, _ELEMENT_BYTES.get(item.dtype, 4),
        )  # fmt: skip
    return GraphArrays(
        op_class,
        node,
        np.array([[e.source for e in graph.edges], [e.target for e in graph.edges]], np.int32).reshape(2, -1),
        np.array([e.tensor_bytes for e in graph.edges], np.float64),
        float(graph.input_bytes),
        float(graph.output_bytes),
        graph.batch,
    )
