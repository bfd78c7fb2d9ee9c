"""``gnnperf train``: fit a predictor of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from gnnperf.cli.console import one_line_errors, stderr, stdout
from gnnperf.cli.dataset_option import TrainingDataOption, open_dataset

if TYPE_CHECKING:
    from gnnperf.training.split import Split

EPILOG = """
**Examples**

    gnnperf train configs/smoke.yaml                  # a minute, on rows that ship with gnnperf

    gnnperf train configs/base.yaml --data gnnperf-data --output runs/base

Ctrl-C writes a checkpoint; the same command continues from it.
"""


def train(
    config: Annotated[Path, typer.Argument(help="YAML file; configs/ has some.")],
    data: TrainingDataOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Default: runs/NAME of the configuration.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=2**32 - 1, help="Instead of the configuration's.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Train a predictor: weights, exported network, model card."""
    with one_line_errors():
        from gnnperf.training.config import TrainingConfig

        run = TrainingConfig.from_yaml(config)
        if seed is not None:
            run = run.model_copy(update={"seed": seed})
        folder = output or Path("runs") / run.name

        from gnnperf.evaluation.card import write_card
        from gnnperf.training.checkpoint import Interrupted
        from gnnperf.training.fit import fit
        from gnnperf.training.progress import TrainingBar
        from gnnperf.training.split import split_rows

        dataset = open_dataset(data, published=run.data.published)
        split = split_rows(dataset.frame, run.data, run.seed)
        if not quiet:
            _print_rows(split)
        try:
            fit(run, dataset, folder, split=split, callbacks=() if quiet else (TrainingBar(stderr),))
        except Interrupted as stopped:
            stderr.print(f"{stopped}; run the same command again to continue")
            raise typer.Exit(130) from None
        result = write_card(folder, dataset, split)

        from gnnperf.cli.accuracy_tables import accuracy_tables

        # A pipe has no width; rich would assume 80 columns there.
        console = stdout if stdout.is_terminal else Console(width=120, highlight=False)
        for table in accuracy_tables(result, console.width):
            console.print(table)
    stdout.print(f"written to {folder}: try `gnnperf predict FILE --predictor {folder}`", markup=False, soft_wrap=True)


def _print_rows(split: Split) -> None:
    """What is trained on."""
    for column in ("source", "device"):
        counts = split.train[column].astype(str).value_counts()
        text = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        stderr.print(f"{len(split.train):,} rows by {column}: {text}", markup=False)
    stderr.print(f"held out: {len(split.held_out):,} rows of other families, {len(split.in_space):,} of search spaces")
