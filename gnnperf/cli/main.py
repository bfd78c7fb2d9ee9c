"""The command ``gnnperf``: registers one command a file."""

from __future__ import annotations

import sys

import typer

from gnnperf import __version__
from gnnperf.cli import (
    adapt,
    benchmark,
    calibrate,
    data,
    devices,
    evaluate,
    inspect,
    measure,
    predict,
    sweep,
    train,
    tune,
    zoo,
)
from gnnperf.cli.console import EXIT_FAILED, print_error

app = typer.Typer(
    name="gnnperf",
    help="How long a neural network takes on a device you may not own, from its ONNX file alone.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"gnnperf {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


app.command("predict", epilog=predict.EPILOG)(predict.predict)
app.command("sweep", epilog=sweep.EPILOG)(sweep.sweep)
app.command("inspect")(inspect.inspect_model)
app.add_typer(devices.app, name="devices")
app.add_typer(zoo.app, name="zoo")
app.add_typer(data.app, name="data")
app.command("train", epilog=train.EPILOG)(train.train)
app.command("tune", epilog=tune.EPILOG)(tune.tune)
app.command("adapt", epilog=adapt.EPILOG)(adapt.adapt)
app.command("measure", epilog=measure.EPILOG)(measure.measure)
app.command("evaluate", epilog=evaluate.EPILOG)(evaluate.evaluate)
app.command("benchmark", epilog=benchmark.EPILOG)(benchmark.benchmark)
app.command("calibrate", epilog=calibrate.EPILOG)(calibrate.calibrate)


def main() -> None:
    """Entry point of the console script."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.reconfigure(errors="replace")  # a terminal that cannot show a character is no reason to fail
    try:
        app()
    except OSError as error:  # a command's own are caught there; this is a full disk behind its output
        print_error(f"cannot write the output: {error.strerror or error}")
        sys.exit(EXIT_FAILED)
