"""The operator graph: what a network does, tensor by tensor, without its weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx


class OpClass(IntEnum):
    """Canonical operator classes. The numbers are stored in graph stores and networks: append, never renumber."""

    OTHER = 0  # nobody knows it: costed by its bytes, and the prediction says so
    CONV = 1  # dense convolution, groups == 1
    GROUPED_CONV = 2
    DEPTHWISE_CONV = 3  # groups == input channels
    CONV_TRANSPOSE = 4
    GEMM = 5  # matrix product with a weight matrix (Gemm, MatMul by an initializer)
    MATMUL = 6  # product of two activations, also Einsum; may be batched
    ATTENTION = 7  # fused attention
    BATCH_NORM = 8
    LAYER_NORM = 9  # layer, instance, group and RMS normalisation
    LRN = 10
    ACTIVATION = 11  # one input, one output, element by element
    ELEMENTWISE = 12  # two or more inputs, broadcast
    REDUCTION = 13
    POOLING = 14
    GLOBAL_POOLING = 15
    SOFTMAX = 16
    RECURRENT = 17
    EMBEDDING = 18  # Gather of rows from a table
    DATA_MOVEMENT = 19  # copies: transpose, concat, slice, pad, expand ...
    VIEW = 20  # no copy at run time: reshape, flatten, squeeze ...
    RESIZE = 21
    QUANTIZE = 22  # (de)quantisation and casts of activations
    CLASSICAL_ML = 23  # ai.onnx.ml
    CONTROL_FLOW = 24


@dataclass(slots=True)
class Node:
    """One operator with the costs of a single execution of the graph (all batch items together).

    Sizes are elements of the tensor's own dtype turned into bytes. ``gemm`` is the matrix product that the operator
    amounts to, as ``(m, n, k, count)``: ``count`` independent products of ``m x k`` by ``k x n``. For a convolution
    m = batch * output positions, n = output channels / groups, k = input channels / groups * kernel positions and
    count = groups; operators without multiply-accumulates have ``(0, 0, 0, 0)``.
    """

    name: str
    op_type: str  # as the file has it; domains other than ai.onnx as a prefix, "com.microsoft.FusedConv"
    op_class: OpClass
    macs: int = 0  # multiply-accumulates
    flops: int = 0  # 2 * macs plus everything else the operator computes
    input_bytes: int = 0  # activations read
    output_bytes: int = 0  # activations written
    weight_bytes: int = 0  # initializers read
    parameters: int = 0  # trainable elements among the weights
    output_elements: int = 0
    gemm: tuple[int, int, int, int] = (0, 0, 0, 0)
    kernel: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    groups: int = 1
    in_channels: int = 0
    out_channels: int = 0
    input_shape: tuple[int, ...] = ()  # of the first activation input
    output_shape: tuple[int, ...] = ()  # of the first output
    dtype: str = "float32"  # of the first output, numpy's name (bfloat16, float8*, int4 as ONNX spells them)
    repeats: int = 1  # how often the graph runs it (bodies of loops); costs above already include it
    resolved: bool = True  # False: some of its tensors have no known shape, costs are a lower bound


@dataclass(slots=True)
class Edge:
    """A tensor that flows from one operator to another."""

    source: int
    target: int
    tensor_bytes: int
    rank: int
    dtype: str = "float32"


@dataclass(slots=True)
class Tensor:
    """An input or output of the whole graph."""

    name: str
    shape: tuple[int | str | None, ...]  # as used: bound dimensions are ints
    dtype: str
    size_bytes: int  # 0 where the shape is not resolved


@dataclass
class OpGraph:
    """A network as operators and the tensors between them, in topological order.

    Operators that cost nothing at run time (constants, shape arithmetic, identities, inference dropout) are folded
    away. ``warnings`` are sentences for the user; ``assumptions`` names every dimension that was free in the file and
    the value that it was given.
    """

    name: str
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    batch: int = 1
    assumptions: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one execution."""
        return sum(node.macs for node in self.nodes)

    @property
    def flops(self) -> int:
        """Floating-point operations of one execution, 2 per multiply-accumulate."""
        return sum(node.flops for node in self.nodes)

    @property
    def parameters(self) -> int:
        """Trainable elements."""
        return sum(node.parameters for node in self.nodes)

    @property
    def input_bytes(self) -> int:
        """Bytes that enter the graph, the weights not among them."""
        return sum(tensor.size_bytes for tensor in self.inputs)

    @property
    def output_bytes(self) -> int:
        """Bytes that leave the graph."""
        return sum(tensor.size_bytes for tensor in self.outputs)

    @property
    def unknown_operators(self) -> list[str]:
        """Operator types that fell into ``OpClass.OTHER``, each once, sorted."""
        return sorted({node.op_type for node in self.nodes if node.op_class == OpClass.OTHER})

    def to_networkx(self) -> networkx.MultiDiGraph:
        """The graph for networkx; node and edge attributes are the dataclass fields."""
        from dataclasses import asdict

        import networkx

        graph = networkx.MultiDiGraph(name=self.name, batch=self.batch)
        for index, node in enumerate(self.nodes):
            graph.add_node(index, **asdict(node))
        for edge in self.edges:
            attributes = asdict(edge)
            graph.add_edge(attributes.pop("source"), attributes.pop("target"), **attributes)
        return graph
