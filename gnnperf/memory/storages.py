"""Which operators of a graph write memory of their own, and which work in that of another.

An ONNX file spells out what a framework runs as one kernel: SiLU as Sigmoid and Mul, GELU by Erf, a layer normalisation
as nine operators. Their inner tensors exist in the file alone. And a view, such as Reshape, only looks at its input.
"""

from __future__ import annotations

from dataclasses import dataclass

from gnnperf.graph import OpClass, OpGraph

OUTSIDE = -1
"""In place of an operator: the tensor enters the graph, so that its caller holds it all the time."""

_POINTWISE = frozenset({OpClass.ACTIVATION, OpClass.ELEMENTWISE, OpClass.REDUCTION})


@dataclass(frozen=True)
class Storages:
    """Who holds what; N operators, in execution order.

    Attributes:
        inputs: for each operator, the operators whose memory it reads, each once; OUTSIDE for what enters the graph.
        holder: ``[N]`` the operator in whose memory the output lies: itself, or for views the one that they look at.
        size_bytes: ``[N]`` of the memory that an operator writes; 0 for views and inside of what runs as one kernel.
        fused_into: ``[N]`` the last operator of the kernel that an operator is an inner part of; itself elsewhere.
    """

    inputs: list[list[int]]
    holder: list[int]
    size_bytes: list[int]
    fused_into: list[int]


def storages(graph: OpGraph) -> Storages:
    """Follow views and fused kernels through a graph.

    Sizes are those of the file's own number formats; bodies of loops hold one round at a time.
    """
    count = len(graph.nodes)
    producers: list[list[int]] = [[] for _ in range(count)]
    arriving_bytes = [0] * count
    for edge in graph.edges:
        producers[edge.target].append(edge.source)
        arriving_bytes[edge.target] += edge.tensor_bytes
    fused_into = _fused(graph, producers)
    inputs: list[list[int]] = []
    holder = list(range(count))
    size_bytes = [0] * count
    for index, (node, sources) in enumerate(zip(graph.nodes, producers, strict=True)):
        read = [holder[sources[0]]] if len(sources) == 1 else list({holder[source]: None for source in sources})
        if node.op_class == OpClass.VIEW:
            holder[index] = read[0] if read else OUTSIDE
        else:
            # What an operator reads beyond what other operators wrote has entered the graph.
            if node.input_bytes > node.repeats * arriving_bytes[index] and OUTSIDE not in read:
                read.append(OUTSIDE)
            if fused_into[index] == index:
                size_bytes[index] = node.output_bytes // node.repeats
        inputs.append(read)
    return Storages(inputs, holder, size_bytes, fused_into)


def _fused(graph: OpGraph, producers: list[list[int]]) -> list[int]:
    """``[N]`` where an operator ends up that is inside of a function of one tensor, computed element by element.

    Such a function shows where its branches meet again: an operator all of whose inputs come, through nothing but
    element-wise operators and reductions, from the same tensor.
    """
    fused_into = list(range(len(graph.nodes)))
    origin: list[int | None] = [None] * len(fused_into)
    for index, (node, sources) in enumerate(zip(graph.nodes, producers, strict=True)):
        if not sources or node.op_class not in _POINTWISE:
            continue
        first = origin[sources[0]]
        start = sources[0] if first is None else first
        if len(sources) == 1:
            origin[index] = start
            continue
        if any((source if origin[source] is None else origin[source]) != start for source in sources[1:]):
            continue
        origin[index] = start
        waiting = list(sources)
        while waiting:
            inner = waiting.pop()
            if inner != start and fused_into[inner] == inner:
                fused_into[inner] = index
                waiting += producers[inner]
    return fused_into
