"""Local functions of a model: replaced by their bodies, once it is clear that the result stays of a sane size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx

from gnnperf.errors import ModelFileError

MAX_INLINED_OPERATORS = 200_000
_MAX_INLINED_BYTES = 2**28
_MAX_CALL_DEPTH = 200

_Key = tuple[str, str, str]  # domain, name, overload


def inline_functions(model: onnx.ModelProto, label: str) -> onnx.ModelProto:
    """The model with every call of a local function replaced by the function's body.

    Raises:
        ModelFileError: functions call themselves, calls are nested more than 200 deep, or ten functions of ten calls
            each and the like would expand to more than :data:`MAX_INLINED_OPERATORS` operators.
    """
    from onnx.inliner import inline_local_functions

    _check_expansion(model, label)
    try:
        return inline_local_functions(model)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ModelFileError(f"the functions inside {label} cannot be inlined: {reason}") from None


def all_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """The nodes and those in their bodies of control flow."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from all_nodes(attribute.g.node)
            for body in attribute.graphs:
                yield from all_nodes(body.node)


def _check_expansion(model: onnx.ModelProto, label: str) -> None:
    functions = {(function.domain, function.name, function.overload): function for function in model.functions}
    calls: dict[_Key, list[_Key]] = {}
    own: dict[_Key, tuple[int, int]] = {}  # operators and bytes of a body by itself
    for key, function in functions.items():
        calls[key], own[key] = _contents(function.node, functions)
    main_calls, (operators, size) = _contents(model.graph.node, functions)
    expanded: dict[_Key, tuple[int, int]] = {}
    for start in dict.fromkeys(main_calls):
        _expand(start, calls, own, expanded, label)
    for call in main_calls:
        operators += expanded[call][0]
        size += expanded[call][1]
    if operators > MAX_INLINED_OPERATORS or size > _MAX_INLINED_BYTES:
        raise ModelFileError(f"the functions inside {label} expand to more than {MAX_INLINED_OPERATORS:,} operators or "
                             f"{_MAX_INLINED_BYTES >> 20} MiB: inline them where the file is made")  # fmt: skip


def _contents(nodes: Iterable[onnx.NodeProto], functions: dict) -> tuple[list[_Key], tuple[int, int]]:
    called, operators, size = [], 0, 0
    for node in nodes:
        size += node.ByteSize()
        for inner in all_nodes([node]):
            operators += 1
            key = (inner.domain, inner.op_type, inner.overload)
            if key in functions:
                called.append(key)
    return called, (operators, size)


def _expand(start: _Key, calls: dict, own: dict, expanded: dict[_Key, tuple[int, int]], label: str) -> None:
    """Fill in the size of a function with all that it calls; depth first, without recursion of our own."""
    path: dict[_Key, Iterator[_Key]] = {start: iter(calls[start])}
    while path:
        key, pending = next(reversed(path.items()))
        called = next((other for other in pending if other not in expanded), None)
        if called is None:
            del path[key]
            parts = [own[key], *(expanded[other] for other in calls[key])]
            expanded[key] = (sum(part[0] for part in parts), sum(part[1] for part in parts))
        elif called in path:
            raise ModelFileError(f"the functions inside {label} call themselves ('{called[1]}'): export it again")
        elif len(path) >= _MAX_CALL_DEPTH:
            raise ModelFileError(f"the functions inside {label} call each other more than {_MAX_CALL_DEPTH} deep")
        else:
            path[called] = iter(calls[called])
