"""``gnnperf predict``: the main job."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gnnperf.cli.console import EXIT_FAILED, EXIT_USAGE, one_line_errors, print_error, stderr, stdout
from gnnperf.cli.shape_options import DimOption, InputShapeOption, parse_dims, parse_input_shapes
from gnnperf.conditions import Conditions, Optimizer, Phase, Precision, Stack, Window
from gnnperf.errors import GnnperfError

if TYPE_CHECKING:
    from gnnperf.prediction import LatencyPrediction

EPILOG = """
**Examples**

    gnnperf predict resnet50.onnx --device 1080ti

    gnnperf predict models/*.onnx -d 1080ti -d v100 --batch 1,8,32 --phase both --json

    gnnperf predict net.onnx --device my_gpu.yaml --dim seq=256

**Exit codes**: 0 all predicted, 1 a file failed (the others are still predicted), 2 wrong usage: an option,
a device or a predictor.
"""
_MOST_IN_FULL = 4
_FEWEST_FOR_A_BAR = 20
_WARNING = "warning: "


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
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="ONNX files; weights are never read.")],
    device: Annotated[
        list[str],
        typer.Option("--device", "-d", help="Registered device (see `gnnperf devices`) or a YAML file; repeatable."),
    ] = ["1080ti"],  # noqa: B006
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch", "-b", metavar="N,...", help="Batch sizes. Default: the file's own, 1 where it is free."
        ),
    ] = None,
    phase: Annotated[PhaseChoice, typer.Option(help="What to predict.")] = PhaseChoice.INFERENCE,
    precision: Annotated[Precision, typer.Option(help="Number format.")] = Precision.FP32,
    stack: Annotated[
        Stack, typer.Option(metavar="STACK", help=f"Framework that would run the network: {', '.join(Stack)}.")
    ] = Stack.PYTORCH,
    window: Annotated[
        Window, typer.Option(metavar="WINDOW", help=f"What the timed window includes: {', '.join(Window)}.")
    ] = Window.DEVICE,
    optimizer: Annotated[
        Optimizer,
        typer.Option(metavar="OPTIMIZER", help=f"Update that a training step ends with: {', '.join(Optimizer)}."),
    ] = Optimizer.SGD,
    dim: DimOption = None,
    input_shape: InputShapeOption = None,
    top: Annotated[int, typer.Option(min=0, help="How many of the slowest operators to list; 0: none.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list, an object a prediction.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line a prediction.")] = False,
    predictor: Annotated[
        Path | None, typer.Option(help="Folder of a predictor of your own, as `gnnperf train` writes it.")
    ] = None,
) -> None:
    """Predict the latency of whole networks from their ONNX files.

    Up to four predictions are shown in full, more as a table.
    """
    if as_json and as_csv:
        raise typer.BadParameter("choose one of --json and --csv")
    dims, input_shapes, batches = parse_dims(dim), parse_input_shapes(input_shape), _batches(batch)

    with one_line_errors(EXIT_USAGE):
        from gnnperf.devices import get_device
        from gnnperf.graph import read_graph
        from gnnperf.predictor import Predictor

        devices = list(dict.fromkeys(get_device(name) for name in device))
        cases = [
            (target, Conditions(part, precision, stack, window, optimizer))
            for target in devices
            for part in phase.phases
        ]
        trained = Predictor.load(predictor)

        predictions, failed = [], False
        for path in _with_bar(files):
            for size in batches:
                try:
                    graph = read_graph(path, batch=size, dims=dims, input_shapes=input_shapes)
                    predictions += trained.predict_graph(graph, cases)
                except GnnperfError as error:
                    print_error(str(error) if str(path) in str(error) else f"{path}: {error}")
                    failed = True
                    break
    if as_json:
        sys.stdout.write(json.dumps([_limited(p, top) for p in predictions], indent=2) + "\n")
    elif as_csv:
        _print_csv(predictions)
    elif len(predictions) > _MOST_IN_FULL:
        _print_table(predictions)
    else:
        for prediction in predictions:
            _print_prediction(prediction, top)
    if failed:
        raise typer.Exit(EXIT_FAILED)


def _with_bar(files: list[Path]) -> Iterable[Path]:
    """The files, with a bar on standard error where there are many and someone may be watching."""
    if len(files) < _FEWEST_FOR_A_BAR or not stderr.is_terminal:
        return files
    from rich.progress import track

    return track(files, "predicting", console=stderr, transient=True)


def _limited(prediction: LatencyPrediction, top: int) -> dict:
    values = prediction.to_dict()
    values["operators"] = values["operators"][:top]
    return values


def _print_csv(predictions: list[LatencyPrediction]) -> None:
    if not predictions:
        return
    rows = [_limited(prediction, 0) for prediction in predictions]
    for row in rows:
        del row["operators"]
        row["warnings"] = " | ".join(row["warnings"])
    writer = csv.DictWriter(sys.stdout, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _digits(value: float) -> str:
    """Three significant digits, never in scientific notation."""
    if value <= 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(value)))
    return f"{value:,.{decimals}f}"


def _interval(p: LatencyPrediction) -> str:
    if p.low_ms is None or p.high_ms is None:
        return "no interval: this predictor was never calibrated"
    return f"90 %: {_digits(p.low_ms)}-{_digits(p.high_ms)}"


def _print_prediction(p: LatencyPrediction, top: int) -> None:
    from rich.table import Table
    from rich.text import Text

    update = f", {p.optimizer} update" if p.optimizer != "none" else ""
    conditions = f", batch {p.batch}, {p.phase}{update}, {p.precision}, {p.stack}, window {p.window}"
    stdout.print(Text.assemble((p.model, "bold"), " on ", (p.device, "bold"), conditions), soft_wrap=True)
    for name, *text in (
        ("latency", (f"{_digits(p.latency_ms)} ms", "bold green"), f" ({_interval(p)})"),
        ("per sample", f"{_digits(p.per_sample_ms)} ms"),
        ("throughput", f"{_digits(p.throughput_per_s)} samples/s"),
        ("roofline", f"{_digits(p.roofline_ms)} ms for the forward pass, from peak and bandwidth alone"),
        ("size", f"{_digits(p.macs / 1e9)} GMACs, {_digits(p.parameters / 1e6)} M parameters"),
        ("nearest", f"{p.nearest} of the measured networks, distance {p.distance:.1f}" if p.nearest else ""),
    ):
        if not any(text):
            continue
        stdout.print(Text.assemble(f"  {name:<12}", *text), soft_wrap=True)
    if top and p.operators:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("  slowest operators", overflow="ellipsis", max_width=44, no_wrap=True)
        table.add_column("type", no_wrap=True, overflow="ellipsis", max_width=24)
        table.add_column("ms", justify="right", no_wrap=True)
        table.add_column("share", justify="right", no_wrap=True)
        for item in p.operators[:top]:
            table.add_row(Text(f"  {item.name}"), Text(item.op_type), _digits(item.latency_ms), f"{item.share:.1%}")
        stdout.print()
        stdout.print(table)
    for warning in p.warnings:
        _print_warning(f"  {_WARNING}", warning)
    stdout.print()


def _print_table(predictions: list[LatencyPrediction]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("model", overflow="fold")
    for name in ("device", "phase"):
        table.add_column(name, no_wrap=True)
    with_intervals = any(p.low_ms is not None for p in predictions)
    for name in ("batch", "ms", *(("90 %",) if with_intervals else ()), "samples/s"):
        table.add_column(name, justify="right", no_wrap=True)
    for p in predictions:
        interval = (f"{_digits(p.low_ms)}-{_digits(p.high_ms)}",) if with_intervals else ()
        figures = (_digits(p.latency_ms), *interval, _digits(p.throughput_per_s))
        table.add_row(Text(p.model), p.device, p.phase, str(p.batch), *figures)
    # A pipe has no width; rich would assume 80 columns there and break the names.
    console = stdout if stdout.is_terminal else Console(width=160, highlight=False)
    console.print(table)
    for model, warning in dict.fromkeys((p.model, warning) for p in predictions for warning in p.warnings):
        _print_warning(f"{_WARNING}{model}: ", warning)


def _print_warning(start: str, warning: str) -> None:
    from rich.text import Text

    stderr.print(Text.assemble((start, "yellow"), warning), soft_wrap=True)
