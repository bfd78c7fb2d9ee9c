"""``gnnperf train``: fit a predictor of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gnnperf.cli.console import one_line_errors, stderr, stdout

EPILOG = """
**Examples**

    gnnperf train configs/smoke.yaml                  # a minute, on rows that ship with gnnperf

    gnnperf train configs/base.yaml --data gnnperf-data --output runs/base

Ctrl-C writes a checkpoint; the same command continues from it.
"""


def train(
    config: Annotated[Path, typer.Argument(help="YAML file; configs/ has some.")],
    data: Annotated[
        Path | None,
        typer.Option(envvar="GNNPERF_DATA", help="Folder that `gnnperf data import` filled. Default: gnnperf-data."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Default: runs/NAME of the configuration.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Instead of the configuration's.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Train a predictor: weights, exported network, model card."""
    with one_line_errors():
        from gnnperf.training.config import TrainingConfig

        run = TrainingConfig.from_yaml(config)
        if seed is not None:
            run = run.model_copy(update={"seed": seed})
        folder = output or Path("runs") / run.name

        from gnnperf.datasets.dataset import Dataset
        from gnnperf.evaluation.card import write_card
        from gnnperf.training.fit import Interrupted, fit

        dataset = Dataset.open(data) if data is not None or not run.data.published_only else Dataset.published()
        try:
            split = fit(run, dataset, folder, progress=not quiet)
        except Interrupted as stopped:
            stderr.print(f"{stopped}; run the same command again to continue")
            raise typer.Exit(130) from None
        summary = write_card(folder, dataset, split)
    stdout.print(summary)
    stdout.print(f"written to {folder}: try `gnnperf predict FILE --predictor {folder}`", markup=False)
