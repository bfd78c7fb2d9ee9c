"""``gnnperf tune``: search for a better configuration."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from gnnperf.cli.benchmark_bar import BenchmarkBar
from gnnperf.cli.console import one_line_errors, stderr, stdout
from gnnperf.cli.dataset_option import TrainingDataOption, open_dataset
from gnnperf.tuning.options import Aim, PrunerName

if TYPE_CHECKING:
    from gnnperf.datasets.dataset import Dataset
    from gnnperf.evaluation.benchmark.result import Benchmark
    from gnnperf.training.config import TrainingConfig

EPILOG = """
**Examples**

    gnnperf tune configs/smoke.yaml --trials 4 --steps 50      # minutes, on rows that ship with gnnperf

    gnnperf tune configs/base.yaml --trials 60                 # about an hour on one core

    gnnperf tune configs/base.yaml --storage study.journal &   # as many as there are cores:

    gnnperf tune configs/base.yaml --storage study.journal     # they share the study

    gnnperf tune configs/base.yaml --storage postgresql://user:password@host/studies    # on many machines

    gnnperf tune configs/base.yaml --objective accuracy,parameters

Ctrl-C keeps the study; the same command continues. docs/tuning.md has the search space and what a trial is.
"""


_TRIAL, _STUDY, _COMPARISON = "What a trial is", "The study", "Comparison"


def tune(
    config: Annotated[Path, typer.Argument(help="YAML file whose values are searched from; it is trial 0.")],
    data: TrainingDataOption = None,
    trials: Annotated[
        int, typer.Option(min=1, help="In total, by all processes and runs; pruned ones count, failed ones do not.")
    ] = 60,
    confirm: Annotated[
        int,
        typer.Option(
            min=0,
            help="So many of the best trials are trained again under two other seeds, beside the configuration's own "
            "values, and the winner is the best of these; 0: the best trial.",
        ),
    ] = 3,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results. Default: runs/tune/STUDY.")
    ] = None,
    steps: Annotated[
        int,
        typer.Option(min=2, help="Of a fold's training; the winner keeps the configuration's.", rich_help_panel=_TRIAL),
    ] = 250,
    device: Annotated[
        str, typer.Option("--device", "-d", help="Whose rows trials are judged by.", rich_help_panel=_TRIAL)
    ] = "1080ti",
    aim: Annotated[
        Aim,
        typer.Option(
            "--objective",
            help="What is minimised: the error, or the error and size or CPU time of a prediction (no pruning then).",
            rich_help_panel=_TRIAL,
        ),
    ] = Aim.ACCURACY,
    inference_weight: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Of inference in the error; training steps have the rest.", rich_help_panel=_TRIAL
        ),
    ] = 0.5,
    all_rows: Annotated[
        bool,
        typer.Option(
            "--all-rows",
            help="Train on all rows of the configuration, not on FP32 rows of sources with the device alone.",
            rich_help_panel=_TRIAL,
        ),
    ] = False,
    storage: Annotated[
        str | None,
        typer.Option(
            help="SQLite file (.db), journal file (.journal) or URL (sqlite, postgresql, mysql) that processes share. "
            "Default: study.db in the output folder.",
            rich_help_panel=_STUDY,
        ),
    ] = None,
    study: Annotated[
        str | None, typer.Option(help="Its name. Default: that of the configuration.", rich_help_panel=_STUDY)
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=2**31, help="Of what is drawn; trainings keep the configuration's.", rich_help_panel=_STUDY
        ),
    ] = 0,
    pruner: Annotated[
        PrunerName, typer.Option(help="How hopeless trials are ended early.", rich_help_panel=_STUDY)
    ] = PrunerName.MEDIAN,
    heartbeat_s: Annotated[
        int,
        typer.Option(
            "--heartbeat",
            min=1,
            help="Seconds between signs of life; a trial whose process is silent for three of them is run again.",
            rich_help_panel=_STUDY,
        ),
    ] = 20,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Train the winner and compare it with ResPerfNet on LeNet, AlexNet and VGG, by which nothing was "
            "tuned (half an hour).",
            rich_help_panel=_COMPARISON,
        ),
    ] = False,
    resperfnet: Annotated[
        Path | None,
        typer.Option(
            help="Folder of ResPerfNet's own measurements, to train it on these too.", rich_help_panel=_COMPARISON
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one object.")] = False,
) -> None:
    """Search for a better configuration with Optuna, by families of networks left out of training."""
    with one_line_errors():
        from gnnperf.devices import get_device
        from gnnperf.errors import TuningError
        from gnnperf.training.config import TrainingConfig
        from gnnperf.training.quiet import quiet

        if resperfnet is not None and not compare:
            raise TuningError("--resperfnet is for --compare: give both or neither")
        if resperfnet is not None and not resperfnet.is_dir():
            raise TuningError(f"{resperfnet} is no folder: --resperfnet takes the one of ResPerfNet's measurements")
        run = TrainingConfig.from_yaml(config)
        slug = get_device(device).slug
        name = study or run.name
        folder = output or Path("runs") / "tune" / name

        from gnnperf.tuning.results import report
        from gnnperf.tuning.run import StudyOptions
        from gnnperf.tuning.run import tune as run_study
        from gnnperf.tuning.worker import Stopped

        dataset = open_dataset(data, published=run.data.published)
        options = StudyOptions(
            name,
            storage or str(folder / "study.db"),
            slug,
            aim,
            inference_weight,
            steps,
            all_rows,
            seed,
            pruner,
            heartbeat_s,
        )
        try:
            with quiet("optuna"):
                found = run_study(run, dataset, options, folder, trials=trials, confirm=confirm, console=stderr)
        except Stopped:
            message = "stopped; the trial is queued again and the study kept: the same command continues"
            stderr.print(message, soft_wrap=True)
            raise typer.Exit(130) from None
        winner = folder / f"{name}-tuned.yaml"
        compared = _compare(TrainingConfig.from_yaml(winner), dataset, folder, resperfnet) if compare else None
        if as_json:
            found |= {"comparison": compared.to_dict()} if compared else {}
            sys.stdout.write(json.dumps(found, indent=2, allow_nan=False) + "\n")
        else:
            stdout.print(report(found), markup=False, soft_wrap=True)
            _print_comparison(compared)
    stderr.print(f"written to {folder}: try `gnnperf train {winner}`", markup=False, soft_wrap=True)


def _compare(winner: TrainingConfig, dataset: Dataset, folder: Path, resperfnet: Path | None) -> Benchmark:
    """Train the winner and run the benchmark."""
    from gnnperf.training.checkpoint import Interrupted
    from gnnperf.training.progress import TrainingBar
    from gnnperf.tuning.comparison import compare_with_resperfnet

    try:
        return compare_with_resperfnet(
            winner, dataset, folder, resperfnet, callbacks=(TrainingBar(stderr),), progress=BenchmarkBar(stderr)
        )
    except Interrupted as stopped:
        stderr.print(f"{stopped}; run the same command again to continue")
        raise typer.Exit(130) from None


def _print_comparison(compared: Benchmark | None) -> None:
    if compared is None:
        return
    from gnnperf.cli.benchmark_tables import benchmark_tables

    console = stdout if stdout.is_terminal else Console(width=140, highlight=False)  # a pipe has no width
    for part in benchmark_tables(compared, console.width):
        console.print(part, markup=False, soft_wrap=isinstance(part, str) and not stdout.is_terminal)
