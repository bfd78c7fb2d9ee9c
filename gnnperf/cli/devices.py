"""``gnnperf devices``: which devices are known, what is known of one, and a file to describe another."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from gnnperf.cli.console import Console, one_line_errors, stderr, stdout
from gnnperf.devices import Device, DeviceKind, get_device, list_devices
from gnnperf.errors import DeviceError

app = typer.Typer(rich_markup_mode="markdown")

_JSON = typer.Option("--json", help="Print JSON instead of a table.")
_UNITS = {"mhz": "MHz", "tflops": "TFLOP/s", "gb_s": "GB/s", "mb": "MB", "gb": "GB"}


@app.callback(invoke_without_command=True)
def devices(
    context: typer.Context,
    kind: Annotated[DeviceKind | None, typer.Option(help="Only devices of this kind.")] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """List the devices that a latency can be predicted for.

    **Examples**

        gnnperf devices --kind gpu

        gnnperf devices show "GeForce GTX 1080 Ti"

        gnnperf devices template -o my_gpu.yaml

    Any other device: describe it in a YAML file and give that file as --device.
    """
    if context.invoked_subcommand is not None:
        if kind is not None or as_json:
            raise typer.BadParameter("--kind and --json of the list go with no subcommand; put --json behind `show`")
        return
    with one_line_errors():
        chosen = [device for device in list_devices() if kind in (None, device.kind)]
        if as_json:
            print(json.dumps([asdict(device) for device in chosen], indent=2))
        else:
            _print_list(chosen)


@app.command()
def show(
    device: Annotated[str, typer.Argument(help="Name or alias of a known device, or a YAML file.")],
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Print everything that is known of one device, and the source of it.

    **Examples**

        gnnperf devices show 1080ti

        gnnperf devices show my_gpu.yaml --json
    """
    with one_line_errors():
        found = get_device(device)
        if as_json:
            print(json.dumps(asdict(found), indent=2))
        else:
            _print_device(found)


@app.command()
def template(
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write; it must not exist yet.")],
) -> None:
    """Write a commented YAML file to describe a device of your own.

    **Example**

        gnnperf devices template -o my_gpu.yaml
    """
    from gnnperf.devices.user_file import TEMPLATE

    with one_line_errors():
        try:
            with output.open("x", encoding="utf-8") as file:
                file.write(TEMPLATE.format(file=output.name))
        except FileExistsError:
            raise DeviceError(f"{output} exists already: choose another name or remove it") from None
        except OSError as error:
            raise DeviceError(f"cannot write {output}: {error.strerror or error}") from None
        stderr.print(f"wrote {escape(str(output))}: fill it in, then `gnnperf devices show {escape(str(output))}`")


def _print_list(devices: list[Device]) -> None:
    console = _console()
    room_for_names = console.width - 80
    with_names = room_for_names >= 20
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("device", no_wrap=True)
    if with_names:
        table.add_column("name", no_wrap=True, max_width=room_for_names)
    table.add_column("architecture", no_wrap=True)
    for heading in ("SMs", "MHz", "TFLOP/s", "GB/s", "GB", "year"):
        table.add_column(heading, justify="right", no_wrap=True)
    for device in devices:
        row = [device.slug, device.name, device.architecture] if with_names else [device.slug, device.architecture]
        figures = (device.sm_count, device.clock_mhz, device.peak_fp32_tflops, device.bandwidth_gb_s)
        for number in (*figures, device.memory_gb, device.year):
            row.append("-" if number is None else f"{number:.4g}")
        table.add_row(*row)
    console.print(table)


def _print_device(device: Device) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for field, value in asdict(device).items():
        if field in ("aliases", "derived"):
            text = "\n".join(value)
        elif field == "correction":
            text = _correction(device)
        elif value is None or value == "":
            text = "unknown"
        else:
            text = f"{value:g} {_unit(field)}".rstrip() if isinstance(value, float) else str(value)
        if text:
            table.add_row(field, escape(text))
    _console().print(table)


def _correction(device: Device) -> str:
    if device.correction is None:
        return ""
    scales = (f"{name} x {scale:.3g}" for name, scale in device.correction.scales)
    return "\n".join([f"fitted to {device.correction.measurements} measurements", *scales])


def _console() -> Console:
    """A pipe has no width; rich would assume 80 columns there and cut the names."""
    return stdout if stdout.is_terminal else Console(width=160, highlight=False)


def _unit(field: str) -> str:
    return next((unit for suffix, unit in _UNITS.items() if field.endswith(f"_{suffix}")), "")
