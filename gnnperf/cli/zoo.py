"""``gnnperf zoo``: which architectures come with gnnperf, and their ONNX files."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from gnnperf.cli.console import Console, one_line_errors, stderr, stdout
from gnnperf.errors import ModelFileError

app = typer.Typer(
    help="List the architectures that come with gnnperf, and write them as ONNX.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


class Weights(StrEnum):
    """What the initializers of an exported file hold."""

    NONE = "none"
    RANDOM = "random"


@app.command("list")
def list_architectures(
    family: Annotated[str | None, typer.Option(help="Only architectures of this family.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List names, and one example of each kind of spec that is written out instead.

    GMACs are thousands of millions of multiply-accumulates at batch 1 and the default image size.

    **Examples**

        gnnperf zoo list --family resnet

        gnnperf zoo list --json
    """
    from gnnperf import zoo

    with one_line_errors():
        parametric = frozenset(zoo.EXAMPLES)
        entries = [(zoo.describe(spec), spec) for spec in (*zoo.names(), *zoo.EXAMPLES)]
        families = list(dict.fromkeys(entry.family for entry, _ in entries))
        if family is not None and family not in families:
            raise ModelFileError(f"no family {family!r} in the zoo; there are {', '.join(families)}")
        rows = []
        for entry, spec in entries:
            if family not in (None, entry.family):
                continue
            counts, published = zoo.count(spec), entry.published
            rows.append({
                "spec": spec,
                "parametric": spec in parametric,
                "family": entry.family,
                "image": entry.image,
                "classes": entry.classes,
                "macs": counts.macs,
                "parameters": counts.parameters,
                "published_gmacs": published and published.gmacs,
                "published_parameters": published and published.parameters,
                "published_source": published and published.source,
                "note": entry.note,
            })  # fmt: skip
        if as_json:
            print(json.dumps(rows, indent=2))
        else:
            _print_table(rows)


@app.command()
def export(
    spec: Annotated[str, typer.Argument(help="A name of `gnnperf zoo list`, or a spec such as resnet50@160.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; by default the spec's name with .onnx.")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Batch size that the file is fixed to.  [default: 1]")
    ] = None,
    dynamic_batch: Annotated[bool, typer.Option("--dynamic-batch", help="Leave the batch size open.")] = False,
    image: Annotated[int | None, typer.Option(min=1, help="Height and width of the input in pixels.")] = None,
    classes: Annotated[int | None, typer.Option(min=1, help="Number of classes.")] = None,
    weights: Annotated[Weights, typer.Option(help="random: a larger file that a runtime can execute.")] = Weights.NONE,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random weights.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write an architecture as an ONNX file.

    **Examples**

        gnnperf zoo export resnet50 --batch 16 -o resnet50.onnx

        gnnperf zoo export mobilenet_v2 --dynamic-batch --weights random

        gnnperf zoo export "bert_base?seq=384" -o bert.onnx

        gnnperf zoo export nasbench201/012340
    """
    if dynamic_batch and batch is not None:
        raise typer.BadParameter("choose one of --batch and --dynamic-batch")

    from gnnperf import zoo

    with one_line_errors():
        path = output or Path(re.sub(r"[^\w.-]+", "_", spec) + ".onnx")
        if path.is_dir():
            raise ModelFileError(f"{path} is a folder: give a file name")
        if path.exists() and not force:
            raise ModelFileError(f"{path} exists already: choose another name, or --force to replace it")
        model = zoo.build(spec, "batch" if dynamic_batch else batch or 1, image, classes=classes)
        if weights is Weights.RANDOM:
            zoo.fill_weights(model, seed)
        _write(path, model.SerializeToString())
        stderr.print(f"wrote {escape(str(path))}", soft_wrap=True)


def _write(path: Path, content: bytes) -> None:
    """Write all or nothing: an interrupted run leaves no half a file under the final name."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        raise ModelFileError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)


def _print_table(rows: list[dict]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("spec", "family"):
        table.add_column(heading, no_wrap=True)
    for heading in ("image", "GMACs", "M parameters"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            escape(row["spec"]), row["family"], str(row["image"] or "-"),
            f"{row['macs'] / 1e9:.4g}", f"{row['parameters'] / 1e6:.4g}",
        )  # fmt: skip
    # A pipe has no width; rich would assume 80 columns there and cut the specs.
    console = stdout if stdout.is_terminal else Console(width=160, highlight=False)
    console.print(table)
