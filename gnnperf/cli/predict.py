"""``gnnperf predict``: the main job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gnnperf import __version__
from gnnperf.cli.condition_options import OptimizerOption, PrecisionOption, StackOption, WindowOption
from gnnperf.cli.console import EXIT_FAILED, EXIT_USAGE, one_line_errors, print_error, stderr
from gnnperf.cli.prediction_text import print_csv, print_json, print_prediction, print_table
from gnnperf.cli.shape_options import DimOption, InputShapeOption, parse_dims, parse_input_shapes
from gnnperf.conditions import Conditions, Optimizer, Phase, Precision, Stack, Window
from gnnperf.errors import GnnperfError

if TYPE_CHECKING:
    from gnnperf.many import Outcome, Request

EPILOG = """
**Examples**

    gnnperf predict resnet50.onnx --device 1080ti

    gnnperf predict models/*.onnx -d 1080ti -d v100 --batch 1,8,32 --phase both --json

    gnnperf predict net.onnx --device my_gpu.yaml --dim seq=256

    gnnperf predict models/ -o latencies.csv --jobs 4      # a folder; the same command goes on where it was killed

    gnnperf predict nets:make_model      # nets.py: a function that returns a torch.nn.Module and its example inputs

**Exit codes**: 0 all predicted, 1 a file failed (the others are still predicted), 2 wrong usage: an option,
a device or a predictor.
"""
_MOST_IN_FULL = 4
_FEWEST_FOR_A_BAR = 20


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
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="ONNX files, whose weights are never read; folders, for all .onnx files below them; "
            "module:function, which is imported and has to return a torch.nn.Module and its example inputs.",
        ),
    ],
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
    precision: PrecisionOption = Precision.FP32,
    stack: StackOption = Stack.PYTORCH,
    window: WindowOption = Window.DEVICE,
    optimizer: OptimizerOption = Optimizer.SGD,
    dim: DimOption = None,
    input_shape: InputShapeOption = None,
    top: Annotated[int, typer.Option(min=0, help="How many of the slowest operators to list; 0: none.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list, an object a prediction.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line a prediction.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="TABLE", help="Write a table: .csv, .jsonl or .parquet. Goes on where it stopped."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start the table of --output anew.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", metavar="N", help="Processes; -1: all cores.")] = 1,
    no_cache: Annotated[
        bool,
        typer.Option("--no-cache", help="Read every file anew, and keep nothing of it in the user's cache folder."),
    ] = False,
    predictor: Annotated[
        Path | None, typer.Option(help="Folder of a predictor of your own, as `gnnperf train` writes it.")
    ] = None,
) -> None:
    """Predict the latency of whole networks from their ONNX files.

    Up to four predictions are shown in full, more as a table.
    """
    if as_json + as_csv + (output is not None) > 1:
        raise typer.BadParameter("choose one of --json, --csv and --output")
    if overwrite and output is None:
        raise typer.BadParameter("--overwrite belongs to --output")
    if not jobs:
        raise typer.BadParameter("at least 1, or -1 for all cores", param_hint="--jobs")
    dims, input_shapes, batches = parse_dims(dim), parse_input_shapes(input_shape), _batches(batch)

    with one_line_errors(EXIT_USAGE):
        from gnnperf.cli.model_sources import expand_sources
        from gnnperf.devices import get_device
        from gnnperf.graph_cache import GraphCache
        from gnnperf.many import Request, predict_many
        from gnnperf.predictor import Predictor

        devices = list(dict.fromkeys(get_device(name) for name in device))
        request = Request(
            cases=tuple(
                (target, Conditions(part, precision, stack, window, optimizer))
                for target in devices
                for part in phase.phases
            ),
            batches=tuple(batches),
            dims=dims,
            input_shapes=input_shapes,
            top=top,
        )
        trained = Predictor.load(predictor)
        sources = expand_sources(files)
        cache = None if no_cache else GraphCache.of_user()

        def predicted(names: Iterable[str]) -> Iterable[tuple[str, Outcome]]:
            outcomes = predict_many(trained, (sources[name] for name in names), request, jobs=jobs, cache=cache)
            return _with_bar(zip(names, outcomes, strict=True), len(names))

        if output is not None:
            failed = _write_table(output, overwrite, list(sources), predicted, request, trained.digest)
        else:
            predictions, failed = [], False
            for name, outcome in predicted(list(sources)):
                predictions += outcome.predictions
                if outcome.error is not None:
                    print_error(_sentence(name, outcome.error))
                    failed = True
            if as_json:
                print_json(predictions, top)
            elif as_csv:
                print_csv(predictions)
            elif len(predictions) > _MOST_IN_FULL:
                print_table(predictions)
            else:
                for prediction in predictions:
                    print_prediction(prediction, top)
    if failed:
        raise typer.Exit(EXIT_FAILED)


def _sentence(name: str, error: GnnperfError) -> str:
    return str(error) if name in str(error) else f"{name}: {error}"


def _with_bar(items: Iterable, count: int) -> Iterable:
    """The items, with a bar on standard error where there are many and someone may be watching."""
    if count < _FEWEST_FOR_A_BAR or not stderr.is_terminal:
        return items
    from rich.progress import track

    return track(items, "predicting", total=count, console=stderr, transient=True)


def _write_table(path: Path, overwrite: bool, names: list[str], predicted, request: Request, digest: str) -> bool:
    """Predict what the table does not have yet; whether any of its files failed."""
    from gnnperf.results import ResultsFile, file_key

    with ResultsFile(path, _identity(request, digest), request.predictions_per_source, overwrite) as table:
        todo = [name for name in names if file_key(name) not in table.finished]
        for name, outcome in predicted(todo):
            error = None if outcome.error is None else _sentence(name, outcome.error)
            if table.format == ".jsonl":
                rows = [prediction.to_dict() for prediction in outcome.predictions]
            else:
                rows = [prediction.to_row() for prediction in outcome.predictions]
            table.append(name, rows, error)
        keys = {file_key(name) for name in names}
        failed = len(keys & table.failed)
    before = f", {len(names) - len(todo)} of them before" if len(todo) < len(names) else ""
    why = f"; {failed} failed, the column error says why" if failed else ""
    stderr.print(f"{path}: {len(names)} files{before}{why}", soft_wrap=True)
    return failed > 0


def _identity(request: Request, digest: str) -> dict[str, Any]:
    """What makes the rows what they are: only a run with the same goes on with a table."""
    return {
        "gnnperf": __version__,
        "predictor": digest,
        "cases": [[asdict(device), asdict(conditions)] for device, conditions in request.cases],
        "batches": request.batches,
        "dims": request.dims,
        "input_shapes": request.input_shapes,
        "top": request.top,
    }
