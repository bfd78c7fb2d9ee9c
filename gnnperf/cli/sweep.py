"""``gnnperf sweep``: one network over a design space of devices."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gnnperf.cli.condition_options import OptimizerOption, PrecisionOption, StackOption, WindowOption
from gnnperf.cli.console import one_line_errors, stderr, stdout
from gnnperf.cli.shape_options import DimOption, InputShapeOption, parse_dims, parse_input_shapes
from gnnperf.conditions import Conditions, Optimizer, Phase, Precision, Stack, Window
from gnnperf.errors import GnnperfError

if TYPE_CHECKING:
    from gnnperf.sweep import SweepPoint

EPILOG = """
**Examples**

    gnnperf sweep net.onnx --base 1080ti --vary clock_mhz=1200:2000:5

    gnnperf sweep net.onnx --base 1080ti --vary clock_mhz=1200:2000:5 --vary bandwidth_gb_s=300:900:4 --json

    gnnperf sweep net.onnx --base my_gpu.yaml --vary cores=2048:8192:7 --plot cores.png

What depends on a varied figure follows in proportion: peaks on clock and cores, cores on sm_count. docs/devices.md says
what holds of predictions for devices that do not exist.
"""


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="ONNX file; weights are never read.")],
    vary: Annotated[
        list[str],
        typer.Option(
            "--vary",
            metavar="FIGURE=START:STOP:COUNT",
            help="Figure of the device, as in a device file, and its values. Repeatable: all combinations.",
        ),
    ],
    base: Annotated[str, typer.Option("--base", help="Device to start from: registered, or a YAML file.")] = "1080ti",
    batch: Annotated[
        int | None, typer.Option("--batch", "-b", min=1, help="Default: the file's own, 1 where it is free.")
    ] = None,
    phase: Annotated[Phase, typer.Option(help="What to predict.")] = Phase.INFERENCE,
    precision: PrecisionOption = Precision.FP32,
    stack: StackOption = Stack.PYTORCH,
    window: WindowOption = Window.DEVICE,
    optimizer: OptimizerOption = Optimizer.SGD,
    dim: DimOption = None,
    input_shape: InputShapeOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list, an object a device.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line a device.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Write a PNG: a line over one figure, a heat map over two.")] = None,
    predictor: Annotated[
        Path | None, typer.Option(help="Folder of a predictor of your own, as `gnnperf train` writes it.")
    ] = None,
) -> None:
    """Predict a network on devices that differ from one in clock, bandwidth, cores or other figures."""
    if as_json and as_csv:
        raise typer.BadParameter("choose one of --json and --csv")
    dims, input_shapes = parse_dims(dim), parse_input_shapes(input_shape)
    with one_line_errors():
        from gnnperf.devices import get_device
        from gnnperf.devices.variation import UNORDERED, design_space, parse_range
        from gnnperf.graph import read_graph
        from gnnperf.predictor import Predictor
        from gnnperf.sweep import sweep as sweep_devices

        ranges = [parse_range(text) for text in vary]
        if plot is not None and len(ranges) > 2:
            raise GnnperfError(f"--plot shows one figure or two, not {len(ranges)}: vary fewer")
        device = get_device(base)
        space = design_space(device, ranges)
        conditions = Conditions(
            phase, precision, stack, window, optimizer if phase == Phase.TRAINING else Optimizer.NONE
        )
        graph = read_graph(file, batch=batch, dims=dims, input_shapes=input_shapes)
        points = sweep_devices(Predictor.load(predictor), graph, space, conditions)
        if plot is not None:
            from gnnperf.sweep_plot import plot_sweep

            plot_sweep(points, f"{graph.name} on {device.slug}, batch {graph.batch}, {phase}", plot)
    common = {"model": graph.name, "base": device.slug, "batch": graph.batch, "phase": str(phase)}
    records = [common | _record(point, graph.batch) for point in points]
    if as_json:
        sys.stdout.write(json.dumps(records, indent=2, allow_nan=False) + "\n")
    elif as_csv:
        writer = csv.DictWriter(sys.stdout, records[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
    else:
        _print_table(points, common, graph.batch)
    for warning in graph.warnings:
        stderr.print(f"warning: {warning}", markup=False, soft_wrap=True)
    if unordered := [each.name for each in ranges if each.name in UNORDERED]:
        stderr.print(
            f"warning: how latencies depend on {' and '.join(unordered)} was learned from few devices: "
            "more of it may be predicted to be slower",
            markup=False,
            soft_wrap=True,
        )


def _record(point: SweepPoint, batch: int) -> dict:
    return {
        **point.values,
        "latency_ms": point.latency_ms,
        "low_ms": point.low_ms,
        "high_ms": point.high_ms,
        "throughput_per_s": 1e3 * batch / point.latency_ms,
        "roofline_ms": point.roofline_ms,
    }


def _print_table(points: list[SweepPoint], common: dict, batch: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    title = Text("{model} from {base}, batch {batch}, {phase}".format(**common))
    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    calibrated = points[0].low_ms is not None
    headings = (*points[0].values, "ms", *(("90 %",) if calibrated else ()), "samples/s", "roofline ms")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for point in points:
        interval = (f"{point.low_ms:.4g}-{point.high_ms:.4g}",) if calibrated else ()
        throughput = f"{1e3 * batch / point.latency_ms:.4g}"
        figures = (f"{point.latency_ms:.4g}", *interval, throughput, f"{point.roofline_ms:.4g}")
        table.add_row(*(f"{value:g}" for value in point.values.values()), *figures)
    # A pipe has no width; rich would assume 80 columns there.
    console = stdout if stdout.is_terminal else Console(width=160, highlight=False)
    console.print(table)
