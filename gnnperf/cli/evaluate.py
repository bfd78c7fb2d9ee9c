"""``gnnperf evaluate``: what predictions are worth on what was never seen."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from gnnperf.cli.console import one_line_errors, stderr, stdout
from gnnperf.cli.dataset_option import open_dataset
from gnnperf.conditions import Phase, Precision
from gnnperf.errors import GnnperfError
from gnnperf.resources import resource

if TYPE_CHECKING:
    from gnnperf.evaluation.evaluation import Evaluation

EPILOG = """
**Examples**

    gnnperf evaluate headline             # shipped predictor, nothing to fetch

    gnnperf evaluate headline --phase training --rows --plot headline.png

    gnnperf evaluate families --plot families.png       # a training a family

    gnnperf evaluate families --json > families.json    # again: no training

    gnnperf evaluate stacks --device 2080ti --steps 1000

    gnnperf evaluate devices -d 1080ti -d 2080ti        # default: all of them

Protocols but headline need `gnnperf data import`. Ctrl-C keeps finished folds and writes checkpoints; the same command
continues. docs/evaluation.md says what each protocol holds out and what each figure means.
"""


class ProtocolName(StrEnum):
    """Evaluation protocols."""

    HEADLINE = "headline"
    FAMILIES = "families"
    BATCHES = "batches"
    STACKS = "stacks"
    INSIDE = "inside"
    DEVICES = "devices"


def evaluate(
    protocol: Annotated[
        ProtocolName,
        typer.Argument(
            help="headline: LeNet, AlexNet, VGG by a trained predictor. families, batches, stacks, devices: leave one "
            "out. inside: networks of search spaces among their like.",
        ),
    ],
    device: Annotated[
        list[str] | None,
        typer.Option(
            "--device", "-d", help="Whose rows are scored. Default: 1080ti; of devices, which takes several: all."
        ),
    ] = None,
    phase: Annotated[Phase | None, typer.Option(help="Only rows of this phase; default: all.")] = None,
    precision: Annotated[Precision, typer.Option(help="Only rows of this precision.")] = Precision.FP32,
    predictor: Annotated[
        Path | None, typer.Option(help="headline: folder of a predictor of your own.", rich_help_panel="headline")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="What every fold is trained by. Default: configs/base.yaml.", rich_help_panel="Other protocols"
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="GNNPERF_DATA",
            help="Folder that `gnnperf data import` filled. Default: gnnperf-data.",
            rich_help_panel="Other protocols",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folds and their rows. Default: runs/evaluate/PROTOCOL.",
            rich_help_panel="Other protocols",
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Instead of the configuration's.", rich_help_panel="Other protocols")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**32 - 1, help="Instead of the configuration's.", rich_help_panel="Other protocols"),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option("--jobs", "-j", min=1, help="Folds at a time, a core each.", rich_help_panel="Other protocols"),
    ] = 2,
    rows: Annotated[bool, typer.Option("--rows", help="Every row with its truth's source.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One object; summary.mape is a fraction.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Write PNGs: a scatter here, errors by family as NAME-families beside it.")
    ] = None,
) -> None:
    """Score predictions on families, batch sizes, stacks or networks that were never trained on."""
    with one_line_errors():
        from gnnperf.devices import get_device

        slugs = tuple(dict.fromkeys(get_device(name).slug for name in device or ()))
        if protocol != ProtocolName.DEVICES:
            if len(slugs) > 1:
                raise GnnperfError(f"{protocol} scores the rows of one device, not of {len(slugs)}")
            slugs = slugs or ("1080ti",)
        if protocol == ProtocolName.HEADLINE:
            given = {"--config": config, "--output": output, "--steps": steps, "--seed": seed}
            _refuse(given, "headline trains nothing: it takes a folder as --predictor, not")
            from gnnperf.evaluation.headline import headline

            result = headline(predictor, *slugs)
        else:
            _refuse({"--predictor": predictor}, f"{protocol} trains a network for each fold: it does not take")
            result = _trained(protocol, slugs, config, data, output, steps, seed, jobs)
        result = result.only(precision, phase)
        if result.rows.empty:
            raise GnnperfError(
                f"{protocol} has no {precision} rows" + (f" of phase {phase}" if phase else "") + f" on {result.device}"
            )
        if plot is not None:
            from gnnperf.evaluation.plots import family_errors, scatter

            scatter(result.rows, plot)
            family_errors(result.rows, plot.with_stem(plot.stem + "-families"))
        if as_json:
            sys.stdout.write(json.dumps(result.to_dict(), indent=2, allow_nan=False) + "\n")
            return

        from gnnperf.cli.evaluation_tables import evaluation_tables, rows_table

        # A pipe has no width; rich would assume 80 columns there.
        console = stdout if stdout.is_terminal else Console(width=140 if rows else 100, highlight=False)
        if rows:
            console.print(rows_table(result.rows))
        for table in evaluation_tables(result, console.width):
            console.print(table)
            console.print()


def _refuse(options: dict[str, object], why: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise GnnperfError(f"{why} {name}")


def _trained(
    protocol: ProtocolName,
    devices: tuple[str, ...],
    config: Path | None,
    data: Path | None,
    output: Path | None,
    steps: int | None,
    seed: int | None,
    jobs: int,
) -> Evaluation:
    """Train and score the folds of a protocol, or read them where that was done before."""
    from gnnperf.training.config import TrainingConfig

    run = TrainingConfig.from_yaml(config or resource("configs/base.yaml"))
    if seed is not None:
        run = run.model_copy(update={"seed": seed})
    if steps is not None:
        run = run.model_copy(update={"optimisation": run.optimisation.model_copy(update={"steps": steps})})

    from gnnperf.evaluation.evaluation import Evaluation
    from gnnperf.evaluation.protocols import PROTOCOLS
    from gnnperf.evaluation.protocols.progress import FoldsBar
    from gnnperf.evaluation.protocols.run import run_folds
    from gnnperf.training.checkpoint import Interrupted

    dataset = open_dataset(data, published=run.data.published)
    folds = PROTOCOLS[protocol](dataset.frame, run, *devices)
    folder = output or Path("runs") / "evaluate" / str(protocol)
    try:
        scored = run_folds(run, dataset, folds, folder, jobs=jobs, progress=FoldsBar(stderr))
    except Interrupted as stopped:
        stderr.print(f"{stopped}; run the same command again to continue")
        raise typer.Exit(130) from None
    if protocol == ProtocolName.FAMILIES:
        from gnnperf.evaluation.calibration import with_intervals

        scored = with_intervals(scored, dataset, run)
    if protocol == ProtocolName.DEVICES:
        from gnnperf.evaluation.device_scaling import with_scaling

        scored = with_scaling(scored, folds, dataset)
    return Evaluation(str(protocol), ", ".join(devices) or "all devices", run.name, run.seed, scored)
