"""``gnnperf predict``: the main job."""

from __future__ import annotations

import csv
import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gnnperf.cli.console import EXIT_FAILED, one_line_errors, print_error, stderr, stdout
from gnnperf.cli.shape_options import parse_dims, parse_input_shapes
from gnnperf.conditions import Conditions, Optimizer, Phase, Precision, Stack, Window
from gnnperf.errors import GnnperfError

EPILOG = """
**Examples**

    gnnperf predict resnet50.onnx --device 1080ti

    gnnperf predict models/*.onnx -d 1080ti -d v100 --batch 1,8,32 --phase both --json

    gnnperf predict net.onnx --device my_gpu.yaml --dim seq=256

**Exit codes**: 0 all predicted, 1 a file failed (the others are still predicted), 2 wrong usage.
"""


class PhaseChoice(StrEnum):
    """What ``--phase`` takes."""

    INFERENCE = "inference"
    TRAINING = "training"
    BOTH = "both"

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases to predict."""
        return (Phase.INFERENCE, Phase.TRAINING) if self is PhaseChoice.BOTH else (Phase(self.value),)


def _batches(text: str | None) -> list[int | None]:
    if text is None:
        return [None]
    try:
        batches = [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no list of batch sizes such as 1,8,32", param_hint="--batch") from None
    if min(batches) < 1:
        raise typer.BadParameter("a batch size is at least 1", param_hint="--batch")
    return list(dict.fromkeys(batches))


def predict(
    files: Annotated[list[Path], typer.Argument(help="ONNX files; weights are neither needed nor read.")],
    device: Annotated[
        list[str],
        typer.Option("--device", "-d", help="Registered device (see `gnnperf devices`) or a YAML file; repeatable."),
    ] = ["1080ti"],  # noqa: B006
    batch: Annotated[
        str | None, typer.Option(help="Batch sizes, such as 1,8,32. Default: the file's own, 1 where it is free.")
    ] = None,
    phase: Annotated[PhaseChoice, typer.Option(help="What to predict.")] = PhaseChoice.INFERENCE,
    precision: Annotated[Precision, typer.Option(help="Number format.")] = Precision.FP32,
    stack: Annotated[Stack, typer.Option(help="Framework generation that would run the network.")] = Stack.PYTORCH,
    window: Annotated[Window, typer.Option(help="What the timed window includes.")] = Window.DEVICE,
    optimizer: Annotated[Optimizer, typer.Option(help="Update that a training step ends with.")] = Optimizer.SGD,
    dim: Annotated[list[str], typer.Option(help="Value of a free dimension, NAME=VALUE; repeatable.")] = [],  # noqa: B006
    input_shape: Annotated[list[str], typer.Option(help="Shape of an input, NAME:1x3x224x224; repeatable.")] = [],  # noqa: B006
    top: Annotated[int, typer.Option(min=0, help="How many of the slowest operators to list; 0: none.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list, an object a prediction.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line a prediction.")] = False,
    predictor: Annotated[
        Path | None, typer.Option(help="Folder of a predictor of your own, as `gnnperf train` writes it.")
    ] = None,
) -> None:
    """Predict the latency of whole networks from their ONNX files."""
    if as_json and as_csv:
        raise typer.BadParameter("choose one of --json and --csv")
    dims, input_shapes, batches = parse_dims(dim), parse_input_shapes(input_shape), _batches(batch)

    from gnnperf.devices import get_device
    from gnnperf.graph import read_graph
    from gnnperf.predictor import Predictor

    with one_line_errors():
        cases = [
            (target, Conditions(part, precision, stack, window, optimizer))
            for target in [get_device(name) for name in device]
            for part in phase.phases
        ]
        trained = Predictor.load(predictor)

        predictions, failed = [], False
        for path in files:
            for size in batches:
                try:
                    graph = read_graph(path, batch=size, dims=dims, input_shapes=input_shapes)
                    results = trained.predict_graph(graph, cases)
                except GnnperfError as error:
                    print_error(f"{path}: {error}" if str(path) not in str(error) else str(error))
                    failed = True
                    break
                predictions += results
                if not as_json and not as_csv:
                    for result in results:
                        _print_prediction(result, top)
    if as_json:
        sys.stdout.write(json.dumps([_limited(p, top) for p in predictions], indent=2) + "\n")
    elif as_csv:
        _print_csv(predictions)
    elif len(predictions) > 1:
        _print_summary(predictions)
    if failed:
        raise typer.Exit(EXIT_FAILED)


def _limited(prediction, top: int) -> dict:
    values = prediction.to_dict()
    values["operators"] = values["operators"][:top]
    return values


def _print_csv(predictions: list) -> None:
    if not predictions:
        return
    rows = [_limited(prediction, 0) for prediction in predictions]
    for row in rows:
        del row["operators"]
        row["warnings"] = " | ".join(row["warnings"])
    writer = csv.DictWriter(sys.stdout, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _milliseconds(value: float) -> str:
    """Three significant digits, never in scientific notation."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _print_prediction(prediction, top: int) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    p = prediction
    update = f", {p.optimizer} update" if p.optimizer != "none" else ""
    stdout.print(
        Text.assemble(
            (p.model, "bold"),
            " on ",
            (p.device, "bold"),
            f", batch {p.batch}, {p.phase}{update}, {p.precision}, {p.stack}",
        )
    )
    facts = Table.grid(padding=(0, 2))
    interval = (
        f"   90 % within {_milliseconds(p.low_ms)} - {_milliseconds(p.high_ms)} ms" if p.low_ms is not None else ""
    )
    facts.add_row("  latency", Text(f"{_milliseconds(p.latency_ms)} ms", style="bold green") + Text(interval))
    facts.add_row("  per sample", f"{_milliseconds(p.per_sample_ms)} ms")
    facts.add_row("  throughput", f"{p.throughput_per_s:,.0f} samples/s")
    facts.add_row(
        "  roofline", f"{_milliseconds(p.roofline_ms)} ms (lower bound of the forward pass, from peak and bandwidth)"
    )
    facts.add_row("  size", f"{p.macs / 1e9:,.2f} GMACs, {p.parameters / 1e6:,.2f} M parameters")
    stdout.print(facts)
    if top and p.operators:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
        table.add_column("  slowest operators", overflow="ellipsis", max_width=44, no_wrap=True)
        table.add_column("type", no_wrap=True, overflow="ellipsis", max_width=24)
        table.add_column("ms", justify="right")
        table.add_column("share", justify="right")
        for item in p.operators[:top]:
            table.add_row(Text(f"  {item.name}"), Text(item.op_type), f"{item.latency_ms:.3f}", f"{item.share:.1%}")
        stdout.print(table)
    for warning in p.warnings:
        stderr.print(Text.assemble(("  warning: ", "yellow"), warning), soft_wrap=True)
    stdout.print()


def _print_summary(predictions: list) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("model", "device", "batch", "phase"):
        table.add_column(name)
    for name in ("ms", "samples/s", "warnings"):
        table.add_column(name, justify="right")
    for p in predictions:
        table.add_row(
            Text(p.model), p.device, str(p.batch), p.phase,
            _milliseconds(p.latency_ms), f"{p.throughput_per_s:,.0f}", str(len(p.warnings) or ""),
        )  # fmt: skip
    stdout.print(table)
