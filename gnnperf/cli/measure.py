"""``gnnperf measure``: time real networks on this machine."""

from __future__ import annotations

import json
import math
import os
import sys
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from gnnperf.cli.batch_option import parse_batches
from gnnperf.cli.console import EXIT_FAILED, one_line_errors, print_error, stderr
from gnnperf.cli.predict import PhaseChoice
from gnnperf.cli.shape_options import DimOption, InputShapeOption, parse_dims, parse_input_shapes
from gnnperf.conditions import Optimizer, Window
from gnnperf.errors import MeasureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gnnperf.measure.cases import Case
    from gnnperf.measure.rows import MeasuredRow

EPILOG = """
**Examples**

    gnnperf measure net.onnx --batch 1,8 --phase both --device my_machine.yaml -o mine.csv

    gnnperf measure resnet18 resnet50@160 "bert_base?seq=384" --batch 1,8,32 -o zoo.csv

    gnnperf measure net.onnx --backend torch-cuda --window pageable-copy -o mine.csv

    gnnperf measure net.onnx --per-layer -o layers.csv

    gnnperf data import measured mine.csv && gnnperf adapt --device my_machine.yaml --measurements mine.csv

**Exit codes**: 0 all measured, 1 something could not be measured (the rest is in the table), 2 wrong usage.
"""
_BACKENDS = "onnxruntime, onnxruntime-cuda, tensorrt, torch, torch-cuda"


def measure(
    networks: Annotated[
        list[str], typer.Argument(metavar="NETWORK", help="ONNX files, or architectures of `gnnperf zoo list`.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Table to append to; made if absent.")],
    batch: Annotated[str, typer.Option("--batch", "-b", metavar="N,...", help="Batch sizes.")] = "1",
    phase: Annotated[PhaseChoice, typer.Option(help="What to time. Training steps run in PyTorch.")] = (
        PhaseChoice.INFERENCE
    ),
    backend: Annotated[
        str, typer.Option(metavar="BACKEND", help=f"What runs inference, and where: {_BACKENDS}.")
    ] = "onnxruntime",
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            "-d",
            help="What this machine is: a name of `gnnperf devices`, or a YAML file (`gnnperf devices template`). "
            "Recognised if it is one of the known.",
        ),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads. One gives the steadiest times.")] = 1,
    cpus: Annotated[
        str | None, typer.Option(metavar="N,...", help="Keep to these processors, as `taskset` does (Linux).")
    ] = None,
    window: Annotated[
        Window,
        typer.Option(
            metavar="WINDOW",
            help="What to time beside the work on a GPU: device (nothing), pinned-copy or "
            "pageable-copy of the input (PyTorch), session (onnxruntime).",
        ),
    ] = Window.DEVICE,
    optimizer: Annotated[
        Optimizer, typer.Option(metavar="OPTIMIZER", help=f"Update of a training step: {', '.join(Optimizer)}.")
    ] = Optimizer.SGD,
    per_layer: Annotated[
        bool, typer.Option("--per-layer", help="Time every operator by itself instead of the whole network.")
    ] = False,
    peak_memory: Annotated[
        bool,
        typer.Option("--peak-memory", help="On a CPU, run once more in a process of its own to see the peak memory."),
    ] = False,
    dim: DimOption = None,
    input_shape: InputShapeOption = None,
    precision: Annotated[
        float, typer.Option(min=0.001, max=0.5, help="Repeat until the median is known within this share.")
    ] = 0.02,
    seconds: Annotated[
        float, typer.Option(min=0.05, max=3600, help="Stop repeating a network after so many seconds all the same.")
    ] = 5.0,
    repeat_busy: Annotated[
        bool, typer.Option("--repeat-busy", help="Measure again what was measured while the machine was busy.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the new rows as one JSON list.")] = False,
) -> None:
    """Time networks where this runs, and append one row each to a table.

    Finished rows are skipped, so Ctrl-C and the same command continue. Weights that a file lacks are made up.
    Other processes disturb: a row says whether the machine was quiet.
    """
    dims, input_shapes, batches = parse_dims(dim), parse_input_shapes(input_shape), parse_batches(batch)
    with one_line_errors():
        if cpus is not None:
            _keep_to(cpus)
        from gnnperf.measure.cases import Campaign
        from gnnperf.measure.models import Network
        from gnnperf.measure.protocol import Settings
        from gnnperf.measure.run import measure as run
        from gnnperf.measure.runners import require_backends

        campaign = Campaign(
            networks=[Network(name, dims, input_shapes) for name in dict.fromkeys(networks)],
            batches=batches,
            phases=phase.phases,
            backend=backend,
            window=window,
            optimizer=optimizer,
            threads=threads,
            device=_device(device, backend, output),
            per_layer=per_layer,
            peak_memory=peak_memory,
        )
        require_backends(campaign)
        settings = Settings(precision=precision, most_s=seconds, most_warm_up_s=max(seconds / 2, 0.05))
        cases = list(campaign.cases())
        with _bar(len(cases)) as (before, after):
            outcome = run(cases, output, settings, before, after, repeat_busy=repeat_busy)
    if as_json:
        sys.stdout.write(json.dumps([_plain(row) for row in outcome.rows], indent=2) + "\n")
    already = f", {outcome.skipped} measured before" if outcome.skipped else ""
    failed = f", {len(outcome.failed)} failed" if outcome.failed else ""
    stderr.print(f"{escape(str(output))}: {len(outcome.rows)} new rows{already}{failed}", soft_wrap=True)
    if outcome.failed:
        raise typer.Exit(EXIT_FAILED)


def _keep_to(cpus: str) -> None:
    """Threads inherit it, so it comes before the frameworks, which start some as they are imported."""
    try:
        os.sched_setaffinity(0, [int(part) for part in cpus.split(",")])
    except AttributeError:
        raise MeasureError("--cpus needs Linux: leave it out") from None
    except (ValueError, OSError):
        usable = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
        raise MeasureError(f"--cpus {cpus}: no list of processors that this process may use ({usable})") from None


def _device(given: str | None, backend: str, table: Path) -> str:
    """What the rows call this machine: a known device's slug, or the path of a description, both checked."""
    from gnnperf.devices import get_device
    from gnnperf.measure.this_device import recognised_device

    if given is not None:
        described = get_device(given)
        is_file = described.source.startswith("user file")
        return os.path.relpath(given, table.parent) if is_file else described.slug
    found = recognised_device(on_gpu="cuda" in backend or backend == "tensorrt")
    if not found:
        stderr.print(
            "warning: this machine is none of `gnnperf devices`, so its rows name no device and cannot be imported; "
            "describe it (`gnnperf devices template`) and give --device",
            soft_wrap=True,
        )
    return found


@contextmanager
def _bar(total: int) -> Iterator[tuple[Callable[[Case], None], Callable[[Case, list[MeasuredRow], str], None]]]:
    """What to call before and after each case: a bar for who watches, a line a row for a file."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task("measuring", total=total)

        def before(case: Case) -> None:
            bar.update(task, description=case.describe())

        def after(case: Case, rows: list[MeasuredRow], problem: str) -> None:
            bar.advance(task)
            for row in rows:
                stderr.print(escape(_line(row)), soft_wrap=True)
            if problem:
                print_error(problem)

        yield before, after


def _line(row: MeasuredRow) -> str:
    layer = f", {row.layer}" if row.layer else ""
    busy = "" if row.quiet is not False else f"  not quiet: {row.quiet_note}"
    spread = f"+-{row.spread_ms / row.latency_ms:.1%}"
    return f"{row.model}{layer}, batch {row.batch}, {row.phase}: {row.latency_ms:.4g} ms {spread}{busy}"


def _plain(row: MeasuredRow) -> dict:
    """For JSON, which knows no NaN."""
    values = asdict(row)
    return {name: None if isinstance(v, float) and math.isnan(v) else v for name, v in values.items()}
