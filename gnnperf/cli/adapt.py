"""``gnnperf adapt``: a device of one's own from a few measurements on it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gnnperf.adaptation.choice import Choice
from gnnperf.cli.console import one_line_errors, stderr, stdout
from gnnperf.conditions import Conditions, Phase, Precision, Stack
from gnnperf.errors import DeviceError, GnnperfError

if TYPE_CHECKING:
    from gnnperf.devices import Device
    from gnnperf.predictor import Predictor

EPILOG = """
**Examples**

    gnnperf adapt --device my_gpu.yaml --suggest 10 --pool models/ --pool zoo     # what to measure

    gnnperf adapt --device my_gpu.yaml --measurements mine.csv -o mine.yaml       # fit to what was measured

    gnnperf predict net.onnx --device mine.yaml

Measurements are those of `gnnperf measure`, or a CSV with the columns model (an ONNX file or an architecture of the
zoo) and latency_ms, and batch, phase, stack, precision, window and optimizer where these are not the defaults.
docs/adaptation.md says what is fitted, and what ten measurements are worth.
"""
_WHOLE_ZOO = "zoo"
_FEW, _DOUBTFUL, _HOPELESS = 3, 0.3, 0.9  # measurements; errors of a fit on what it was fitted to
_MOST_MS, _MOST_WEIGHT_BYTES = 10_000.0, 2_000_000_000  # of what is worth measuring; ONNX files hold 2 GB


def adapt(
    device: Annotated[str, typer.Option("--device", "-d", help="What is known of it: registered, or a YAML file.")],
    measurements: Annotated[
        Path | None, typer.Option("--measurements", "-m", help="CSV of measurements on the device.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Device file to write. Default: DEVICE-adapted.yaml, in this folder."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the output where it is there.")] = False,
    suggest: Annotated[
        int | None,
        typer.Option(min=1, help="Say which so many networks to measure first.", rich_help_panel="What to measure"),
    ] = None,
    pool: Annotated[
        list[str] | None,
        typer.Option(
            help="What could be measured: a folder of ONNX files, one, an architecture of the zoo, or zoo for all of "
            "them. Repeatable.",
            rich_help_panel="What to measure",
        ),
    ] = None,
    choice: Annotated[
        Choice,
        typer.Option(
            help="kmeans: networks that stand for the others. random: any.", rich_help_panel="What to measure"
        ),
    ] = Choice.KMEANS,
    batch: Annotated[int, typer.Option("--batch", "-b", min=1, rich_help_panel="What to measure")] = 1,
    phase: Annotated[Phase, typer.Option(rich_help_panel="What to measure")] = Phase.INFERENCE,
    precision: Annotated[Precision, typer.Option(rich_help_panel="What to measure")] = Precision.FP32,
    stack: Annotated[
        Stack, typer.Option(metavar="STACK", help=f"One of {', '.join(Stack)}.", rich_help_panel="What to measure")
    ] = Stack.PYTORCH,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Of the choice.", rich_help_panel="What to measure")
    ] = 0,
    predictor: Annotated[
        Path | None, typer.Option(help="Folder of a predictor of your own, as `gnnperf train` writes it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Fit predictions for a device to measurements on it, or say which networks to measure first.

    The network itself stays as it is: what is fitted are factors on launch times, device times and a few parts of
    them. They go into a device file, which --device takes in every command.
    """
    if (measurements is None) == (suggest is None):
        raise typer.BadParameter("give one of --measurements and --suggest")
    if suggest is None and pool:
        raise typer.BadParameter("--pool goes with --suggest")
    with one_line_errors():
        from gnnperf.devices import get_device
        from gnnperf.predictor import Predictor

        target, trained = get_device(device), Predictor.load(predictor)
        if suggest is not None:
            conditions = Conditions(phase, precision, stack)
            chosen = _suggested(trained, target, pool or [], conditions, batch, suggest, choice, seed)
            _print_suggestions(chosen, target, conditions, as_json=as_json)
        else:
            _fit(trained, target, device, measurements, output, overwrite=overwrite, as_json=as_json)


def _fit(
    predictor: Predictor,
    device: Device,
    source: str,
    measurements: Path,
    output: Path | None,
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    from gnnperf.adaptation.components import log_scales, take_apart
    from gnnperf.adaptation.cross_check import left_out_latencies
    from gnnperf.adaptation.device_file import write_adapted
    from gnnperf.adaptation.fit import fit_correction
    from gnnperf.adaptation.measurements import read_measurements

    output = output or Path(f"{device.slug.removesuffix('-adapted')}-adapted.yaml")
    if output.exists() and not overwrite:
        raise DeviceError(f"{output} exists already: choose another --output, or --overwrite")
    if output.resolve() == measurements.resolve():
        raise DeviceError(f"{output} is the table of measurements: choose another --output")
    measured = read_measurements(measurements, device)
    parts = take_apart(predictor, measured.graphs, [(device, each) for each in measured.conditions])
    correction = fit_correction(parts, measured.latency_ms, predictor.network_digest)

    def mape(predicted_ms) -> float | None:
        error = float(abs(predicted_ms / measured.latency_ms - 1).mean())
        return None if error != error else error

    fitted = mape(parts.scaled(log_scales(correction))[0])
    if fitted is None or fitted > _HOPELESS:
        raise DeviceError(
            f"no correction brings predictions near the measurements in {measurements}: are its times in milliseconds, "
            f"its batch sizes right, and the device {device.name}?"
        )
    if fitted > _DOUBTFUL:
        stderr.print(
            f"warning: the fit stays {fitted:.0%} off its own measurements: are the unit (ms), the batch sizes and the "
            "device right?", markup=False, soft_wrap=True,
        )  # fmt: skip
    if len(measured) < _FEW:
        stderr.print(
            f"warning: a fit to so few measurements ({len(measured)}) may do more harm than good: ten are better",
            markup=False, soft_wrap=True,
        )  # fmt: skip
    adapted = write_adapted(device, source, correction, output)

    record = {
        "device": adapted.slug,
        "file": str(output),
        "measurements": len(measured),
        "left_out": measured.left_out,
        "mape_before": mape(parts.latency_ms),
        "mape_fitted": fitted,
        "mape_of_networks_left_out": mape(left_out_latencies(parts, measured.latency_ms, measured.models)),
        "scales": dict(correction.scales),
    }
    if as_json:
        sys.stdout.write(json.dumps(record, indent=2, allow_nan=False) + "\n")
        return
    without = f", {measured.left_out} rows of layers or of a busy machine left out" if measured.left_out else ""
    stdout.print(f"{device.name}: {len(measured)} measurements{without}", markup=False, soft_wrap=True)
    for name, value in (
        ("error before", record["mape_before"]),
        ("of the fit, on what it was fitted to", record["mape_fitted"]),
        ("on networks left out of a fit in turn", record["mape_of_networks_left_out"]),
    ):
        stdout.print(f"  {name:<40}{'-' if value is None else f'{value:.1%}'}", markup=False)
    for name, scale in correction.scales:
        if "_" not in name:
            stdout.print(f"  {name:<40}x {scale:.3g}", markup=False)
    stdout.print(f"wrote {output}: `gnnperf predict net.onnx --device {output}`", markup=False, soft_wrap=True)


def _suggested(
    predictor: Predictor,
    device: Device,
    pool: Sequence[str],
    conditions: Conditions,
    batch: int,
    count: int,
    choice: Choice,
    seed: int,
) -> list[tuple[str, float]]:
    """Names of networks to measure, and what is predicted for each in ms."""
    from gnnperf.adaptation.components import take_apart
    from gnnperf.adaptation.suggest import choose
    from gnnperf.graph.arrays import FIELD
    from gnnperf.measure.models import Network

    names = _pool_names(pool)
    graphs, known = [], []
    for name in names:
        try:
            graphs.append(Network(name).structure.at_batch(batch))
            known.append(name)
        except GnnperfError as error:
            stderr.print(f"warning: {name} is left out: {error}", markup=False, soft_wrap=True)
    if not graphs:
        raise GnnperfError("the pool holds no network that can be read: give --pool a folder of ONNX files, or zoo")
    parts = take_apart(predictor, graphs, [(device, conditions)] * len(graphs))
    small = [
        i for i, graph in enumerate(graphs)
        if parts.latency_ms[i] <= _MOST_MS and graph.node[:, FIELD["weight_bytes"]].sum() <= _MOST_WEIGHT_BYTES
    ]  # fmt: skip
    if left_out := len(graphs) - len(small):
        stderr.print(
            f"warning: {left_out} of {len(graphs)} networks are left out: they are too large to be measured here, or "
            f"are predicted to take more than {_MOST_MS / 1000:.0f} s", markup=False, soft_wrap=True,
        )  # fmt: skip
    if not small:
        raise GnnperfError("no network of the pool is small enough to be measured")
    parts, known = parts[small], [known[i] for i in small]
    return [(known[i], float(parts.latency_ms[i])) for i in choose(parts, count, choice, seed)]


def _pool_names(pool: Sequence[str]) -> list[str]:
    from gnnperf import zoo

    names: list[str] = []
    for entry in pool:
        if entry == _WHOLE_ZOO:
            names += zoo.names()
        elif Path(entry).is_dir():
            names += [str(path) for path in sorted(Path(entry).rglob("*.onnx"))]
        else:
            names.append(entry)
    return list(dict.fromkeys(names))


def _print_suggestions(
    chosen: Sequence[tuple[str, float]], device: Device, conditions: Conditions, *, as_json: bool
) -> None:
    if as_json:
        records = [{"model": name, "predicted_ms": latency_ms} for name, latency_ms in chosen]
        sys.stdout.write(json.dumps(records, indent=2, allow_nan=False) + "\n")
        return
    for name, latency_ms in chosen:
        stdout.print(f"{name}  ({latency_ms:.3g} ms predicted)", markup=False, soft_wrap=True)
