"""How predictions look: in words, as a table, as JSON and as CSV."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gnnperf.cli.console import stderr, stdout

if TYPE_CHECKING:
    from gnnperf.memory import MemoryEstimate
    from gnnperf.prediction import LatencyPrediction

_WARNING = "warning: "


def print_json(predictions: Sequence[LatencyPrediction], top: int) -> None:
    """One list, an object a prediction, with its ``top`` slowest operators."""
    sys.stdout.write(json.dumps([prediction.to_dict(top) for prediction in predictions], indent=2) + "\n")


def print_csv(predictions: Sequence[LatencyPrediction]) -> None:
    """A line a prediction; nothing where there is none."""
    if not predictions:
        return
    rows = [prediction.to_row() for prediction in predictions]
    writer = csv.DictWriter(sys.stdout, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def digits(value: float) -> str:
    """Three significant digits, never in scientific notation."""
    if value <= 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(value)))
    return f"{value:,.{decimals}f}"


def _interval(p: LatencyPrediction) -> str:
    if p.low_ms is None or p.high_ms is None:
        return "no interval: this predictor was never calibrated"
    return f"90 %: {digits(p.low_ms)}-{digits(p.high_ms)}"


def _memory(memory: MemoryEstimate) -> tuple:
    """Peak, whether it fits, and the parts in the order of their size."""
    parts = (
        ("weights", memory.weights_bytes),
        ("gradients", memory.gradients_bytes),
        ("optimizer", memory.optimizer_bytes),
        ("activations", memory.activations_bytes),
        ("workspace", memory.workspace_bytes),
        ("runtime", memory.runtime_bytes),
    )
    sizes = ", ".join(f"{name} {_size(size)}" for name, size in sorted(parts, key=lambda part: -part[1]) if size)
    if memory.fits is None:
        verdict = ""
    elif memory.fits:
        verdict = f", fits in {_size(memory.device_bytes)}"
    else:
        verdict = (f", does not fit in {_size(memory.device_bytes)}", "bold red")
    return f"{_size(memory.peak_bytes)} at most", verdict, f": {sizes}"


def _size(size_bytes: int) -> str:
    """In the units that memory is sold in: 11 GB are 11 * 2**30 bytes."""
    return f"{digits(size_bytes / 2**30)} GB" if size_bytes >= 0.1 * 2**30 else f"{digits(size_bytes / 2**20)} MB"


def print_prediction(p: LatencyPrediction, top: int) -> None:
    """One prediction in full, with its ``top`` slowest operators."""
    from rich.table import Table
    from rich.text import Text

    update = f", {p.optimizer} update" if p.optimizer != "none" else ""
    conditions = f", batch {p.batch}, {p.phase}{update}, {p.precision}, {p.stack}, window {p.window}"
    stdout.print(Text.assemble((p.model, "bold"), " on ", (p.device, "bold"), conditions), soft_wrap=True)
    for name, *text in (
        ("latency", (f"{digits(p.latency_ms)} ms", "bold green"), f" ({_interval(p)})"),
        ("per sample", f"{digits(p.per_sample_ms)} ms"),
        ("throughput", f"{digits(p.throughput_per_s)} samples/s"),
        ("roofline", f"{digits(p.roofline_ms)} ms for the forward pass, from peak and bandwidth alone"),
        ("size", f"{digits(p.macs / 1e9)} GMACs, {digits(p.parameters / 1e6)} M parameters"),
        ("memory", *_memory(p.memory)),
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
            table.add_row(Text(f"  {item.name}"), Text(item.op_type), digits(item.latency_ms), f"{item.share:.1%}")
        stdout.print()
        stdout.print(table)
    for warning in p.warnings:
        _print_warning(f"  {_WARNING}", warning)
    stdout.print()


def print_table(predictions: Sequence[LatencyPrediction]) -> None:
    """A line a prediction, then the warnings."""
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
        interval = (f"{digits(p.low_ms)}-{digits(p.high_ms)}",) if with_intervals else ()
        figures = (digits(p.latency_ms), *interval, digits(p.throughput_per_s))
        table.add_row(Text(p.model), p.device, p.phase, str(p.batch), *figures)
    # A pipe has no width; rich would assume 80 columns there and break the names.
    console = stdout if stdout.is_terminal else Console(width=160, highlight=False)
    console.print(table)
    for model, warning in dict.fromkeys((p.model, warning) for p in predictions for warning in p.warnings):
        _print_warning(f"{_WARNING}{model}: ", warning)


def _print_warning(start: str, warning: str) -> None:
    from rich.text import Text

    stderr.print(Text.assemble((start, "yellow"), warning), soft_wrap=True)
