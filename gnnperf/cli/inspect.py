"""``gnnperf inspect``: what a network does, operator by operator."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gnnperf.cli.console import one_line_errors, stdout
from gnnperf.cli.shape_options import DimOption, InputShapeOption, parse_dims, parse_input_shapes

if TYPE_CHECKING:
    from gnnperf.graph import Node, OpGraph

_NAME_WIDTH = 32


def inspect_model(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="ONNX file; its weights are not read.")],
    batch: Annotated[int | None, typer.Option("--batch", "-b", metavar="N", help="Batch size.")] = None,
    dim: DimOption = None,
    input_shape: InputShapeOption = None,
    top: Annotated[int, typer.Option("--top", min=0, metavar="N", help="Show the N most expensive operators.")] = 15,
    all_operators: Annotated[bool, typer.Option("--all", help="Show all operators, in the order they run.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Show the operators of an ONNX file: shapes, multiply-accumulates, parameters, bytes, arithmetic intensity.

    No device and no prediction are involved. One multiply-accumulate (MAC) counts as two FLOPs; bytes are what an
    unfused execution reads and writes.

    Examples:

        gnnperf inspect resnet50.onnx

        gnnperf inspect bert.onnx --batch 8 --dim sequence=256 --all

        gnnperf inspect detector.onnx --input-shape images:1x3x640x640 --json
    """
    dims, input_shapes = parse_dims(dim), parse_input_shapes(input_shape)
    with one_line_errors():
        from gnnperf.graph import read_graph

        graph = read_graph(file, batch=batch, dims=dims, input_shapes=input_shapes)
    if json:
        typer.echo(json_module.dumps(graph_summary(graph), indent=2))
    else:
        _print(graph, None if all_operators else top)


def graph_summary(graph: OpGraph) -> dict[str, Any]:
    """The JSON object of ``gnnperf inspect --json``.

    Keys: ``name``, ``batch``, ``inputs`` and ``outputs`` (name, shape, dtype, bytes), ``totals`` (operators, macs,
    flops, parameters, input_bytes, output_bytes, weight_bytes, arithmetic_intensity in FLOP per byte), ``classes``
    (the same totals for every operator class), ``operators`` (in execution order, with shape, gemm, kernel and
    resolved), ``unknown_operators``, ``assumptions`` (free dimension -> the size it was given) and ``warnings``.
    """
    return {
        "name": graph.name,
        "batch": graph.batch,
        "inputs": [_tensor(tensor) for tensor in graph.inputs],
        "outputs": [_tensor(tensor) for tensor in graph.outputs],
        "totals": _totals(graph.nodes),
        "classes": {name: _totals(nodes) for name, nodes in _by_class(graph)},
        "operators": [
            {
                "name": node.name,
                "op_type": node.op_type,
                "class": _class_name(node),
                "input_shape": list(node.input_shape),
                "output_shape": list(node.output_shape),
                "dtype": node.dtype,
                **_costs([node]),
                "gemm": list(node.gemm),
                "kernel": list(node.kernel),
                "stride": list(node.stride),
                "groups": node.groups,
                "repeats": node.repeats,
                "resolved": node.resolved,
            }
            for node in graph.nodes
        ],
        "unknown_operators": graph.unknown_operators,
        "assumptions": graph.assumptions,
        "warnings": graph.warnings,
    }


def _tensor(tensor) -> dict[str, Any]:
    return {"name": tensor.name, "shape": list(tensor.shape), "dtype": tensor.dtype, "bytes": tensor.size_bytes}


def _costs(nodes: list[Node]) -> dict[str, Any]:
    fields = ("macs", "flops", "parameters", "input_bytes", "output_bytes", "weight_bytes")
    costs: dict[str, Any] = {field: sum(getattr(node, field) for node in nodes) for field in fields}
    moved = costs["input_bytes"] + costs["output_bytes"] + costs["weight_bytes"]
    costs["arithmetic_intensity"] = round(costs["flops"] / moved, 3) if moved else 0.0
    return costs


def _totals(nodes: list[Node]) -> dict[str, Any]:
    return {"operators": len(nodes), **_costs(nodes)}


def _by_class(graph: OpGraph) -> list[tuple[str, list[Node]]]:
    classes: dict[str, list[Node]] = {}
    for node in graph.nodes:
        classes.setdefault(_class_name(node), []).append(node)
    return sorted(classes.items(), key=lambda item: (-sum(node.flops for node in item[1]), item[0]))


def _class_name(node: Node) -> str:
    return node.op_class.name.lower()


def _print(graph: OpGraph, top: int | None) -> None:
    from rich.markup import escape
    from rich.table import Table

    totals = _totals(graph.nodes)
    stdout.print(f"[bold]{escape(graph.name)}[/], batch {graph.batch}, {len(graph.nodes)} operators")
    summary = Table.grid(padding=(0, 2))
    for label, tensors in (("inputs", graph.inputs), ("outputs", graph.outputs)):
        for tensor in tensors:
            shape = _shape(tensor.shape) if tensor.shape or tensor.size_bytes else "?"
            summary.add_row(label, f"{escape(tensor.name)}  {shape}  {tensor.dtype}")
            label = ""
    summary.add_row("MACs", _count(totals["macs"]))
    summary.add_row("FLOPs", _count(totals["flops"]))
    summary.add_row("parameters", _count(totals["parameters"]))
    summary.add_row("weights read", _bytes(totals["weight_bytes"]))
    summary.add_row("activations", f"{_bytes(totals['input_bytes'])} read, {_bytes(totals['output_bytes'])} written")
    summary.add_row("intensity", f"{totals['arithmetic_intensity']:.1f} FLOP/byte")
    stdout.print(summary)

    classes = _new_table(["class", "operators", "MACs", "% FLOPs", "parameters", "bytes"], text_columns=1)
    for name, nodes in _by_class(graph):
        costs = _totals(nodes)
        share = 100 * costs["flops"] / totals["flops"] if totals["flops"] else 0.0
        row = (str(len(nodes)), _count(costs["macs"]), f"{share:.1f}", _count(costs["parameters"]), _moved(costs))
        classes.add_row(name, *row)
    stdout.print(classes)

    nodes = graph.nodes if top is None else sorted(graph.nodes, key=_expense, reverse=True)[:top]
    if nodes:
        if len(nodes) < len(graph.nodes):
            stdout.print(f"The {len(nodes)} most expensive operators (--all shows all {len(graph.nodes)}):")
        stdout.print(_operator_table(nodes))
    for warning in graph.warnings:
        stdout.print(f"[yellow]note:[/] {escape(warning)}", soft_wrap=True)


def _operator_table(nodes: Iterable[Node]):
    from rich.markup import escape

    table = _new_table(["operator", "type", "output", "MACs", "parameters", "bytes", "FLOP/byte"], text_columns=3)
    for node in nodes:
        costs = _costs([node])
        times = f" x{node.repeats}" if node.repeats > 1 else ""
        table.add_row(
            escape(_short(node.name)),
            escape(node.op_type) + times,
            _shape(node.output_shape) + ("" if node.resolved else " ?"),
            _count(node.macs),
            _count(node.parameters),
            _moved(costs),
            f"{costs['arithmetic_intensity']:.1f}",
        )
    return table


def _new_table(columns: list[str], text_columns: int):
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for position, column in enumerate(columns):
        table.add_column(column, justify="left" if position < text_columns else "right", overflow="fold")
    return table


def _expense(node: Node) -> tuple[int, int]:
    return node.flops, node.input_bytes + node.output_bytes + node.weight_bytes


def _moved(costs: dict[str, Any]) -> str:
    return _bytes(costs["input_bytes"] + costs["output_bytes"] + costs["weight_bytes"])


def _shape(shape: tuple) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _short(name: str) -> str:
    """The end of a long name: exporters put the module path in front."""
    return name if len(name) <= _NAME_WIDTH else "…" + name[1 - _NAME_WIDTH :]


def _count(number: int) -> str:
    for factor, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= factor:
            return f"{number / factor:.2f} {unit}"
    return str(number)


def _bytes(number: int) -> str:
    for exponent, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if number >= 1024**exponent:
            return f"{number / 1024**exponent:.1f} {unit}"
    return f"{number} B"
