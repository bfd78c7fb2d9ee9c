"""``gnnperf calibrate``: 90 % intervals for a predictor, from families that were left out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from gnnperf.cli.console import one_line_errors, stdout
from gnnperf.cli.dataset_option import open_dataset

EPILOG = """
**Examples**

    gnnperf evaluate families && gnnperf calibrate runs/base --folds runs/evaluate/families

    gnnperf calibrate runs/base --rows families.csv --data gnnperf-data --output covered.csv

Folds are scored on the rows of every device; a table is taken as it is: columns fold, model, family, device, stack,
precision, phase, window, optimizer, batch, latency_ms and stack_only_ms.
"""


def calibrate(
    predictor: Annotated[Path, typer.Argument(help="Folder of the predictor, as `gnnperf train` writes it.")],
    folds: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the networks that were trained without a family each (`gnnperf evaluate families`)."
        ),
    ] = None,
    rows: Annotated[
        list[Path] | None, typer.Option("--rows", help="Instead: scored rows of left-out families (CSV); repeatable.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="GNNPERF_DATA",
            help="Folder of the measurements that it was trained on. Default: gnnperf-data, or the rows that ship with "
            "gnnperf where it was trained on those.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the rows with their intervals (CSV).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what is written into the predictor.")] = False,
) -> None:
    """Give a predictor 90 % intervals, from its errors on families left out of training.

    Each family is shown with the coverage by intervals that were calibrated on the others. Families that the predictor
    itself holds out are a test: they are never calibrated on.
    """
    if (folds is None) == (not rows):
        raise typer.BadParameter("give one of --folds and --rows")
    with one_line_errors():
        from gnnperf.errors import GnnperfError
        from gnnperf.evaluation.calibration import calibrate_predictor, read_rows
        from gnnperf.evaluation.fold_rows import score_folds
        from gnnperf.training.predictor_files import read_config

        dataset = open_dataset(data, published=read_config(predictor).data.published)
        scored = read_rows(rows) if rows else score_folds(folds, predictor, dataset)
        found = calibrate_predictor(predictor, scored, dataset)
        if output is not None:
            try:
                found.rows.to_csv(output, index=False)
            except OSError as error:
                raise GnnperfError(f"cannot write {output}: {error.strerror or error}") from None
    if as_json:
        sys.stdout.write(json.dumps(found.intervals.to_dict(), indent=2) + "\n")
        return
    console = stdout if stdout.is_terminal else Console(width=120, highlight=False)
    console.print(_coverage_table(found.coverage))
    report = found.intervals.report
    guaranteed = ", ".join(f"{value:.0%} in {phase}" for phase, value in report["guaranteed_coverage"].items())
    stdout.print(
        "\nleft out: by a calibration on the other folds; test: never calibrated on; unmeasured: a device, stack or "
        "precision that the fold was not trained on\n"
        f"level of the quantile {report['level']:.1%}, which guarantees for one more family like these: {guaranteed}\n"
        f"written to {predictor}",
        markup=False,
        soft_wrap=True,
    )


def _coverage_table(coverage) -> Table:
    table = Table(
        title="coverage of 90 % intervals",
        title_justify="left", title_style="bold", box=None, pad_edge=False,
    )  # fmt: skip
    for name in ("phase", "fold", "role", "conditions"):
        table.add_column(name, no_wrap=True)
    for name in ("rows", "coverage", "width", "distance"):
        table.add_column(name, justify="right", no_wrap=True)
    order = ["role", "conditions", "phase", "fold"]
    for row in coverage.sort_values(order).itertuples(index=False):
        table.add_row(
            row.phase, row.fold, row.role, row.conditions, str(row.rows), f"{row.coverage:.0%}", f"{row.width:.2f}",
            f"{row.distance:.2f}",
        )  # fmt: skip
    return table
