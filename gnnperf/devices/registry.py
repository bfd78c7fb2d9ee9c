"""The devices that gnnperf knows by name: ``data/devices.csv``.

Read with the standard library alone, because every ``gnnperf predict`` passes here.
"""

from __future__ import annotations

import csv
import os
from functools import cache
from pathlib import Path

from gnnperf.devices.device import Device, DeviceKind
from gnnperf.errors import DeviceError
from gnnperf.resources import resource

_BRANDS = ("nvidia", "amd", "intel", "geforce", "tesla", "quadro", "radeon", "instinct", "gtx", "rtx", "xeon", "core")
_TEXT = ("slug", "name", "vendor", "architecture", "compute_capability", "source")


def get_device(name_or_path: str | Path | Device) -> Device:
    """The device of that name, or the one that a YAML file describes.

    A name is a slug, a full name or an alias; case, spaces, dashes, underscores and leading brands do not matter:
    ``1080ti``, ``gtx-1080-ti`` and ``NVIDIA GeForce GTX 1080 Ti`` are the same. A known name goes before a file of that
    name. A :class:`Device` comes back as it is.

    Raises:
        DeviceError: no such device (the message suggests the nearest name), or the file is invalid.
    """
    if isinstance(name_or_path, Device):
        return name_or_path
    text = str(name_or_path).strip()
    is_file = isinstance(name_or_path, Path) or text.lower().endswith((".yaml", ".yml")) or os.sep in text
    if not is_file and (_find(text) or not os.path.exists(text)):
        return known_device(text)
    from gnnperf.devices.user_file import read_device_file

    return read_device_file(Path(name_or_path))


def known_device(name: str) -> Device:
    """The device of the table that has this name, in any of the spellings that :func:`get_device` takes.

    Raises:
        DeviceError: there is none.
    """
    device = _find(name)
    if device is None:
        raise DeviceError(f"unknown device {name!r}: {_did_you_mean(name)}`gnnperf devices` lists all")
    return device


@cache
def list_devices() -> tuple[Device, ...]:
    """Every known device, in the order of the table."""
    path = resource("data/devices.csv")
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return tuple(_device(row) for row in csv.DictReader(file))
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise DeviceError(f"the table of devices {path} is missing or damaged ({error}): reinstall gnnperf") from None


def _device(row: dict[str, str]) -> Device:
    def number(field: str) -> float | None:
        return float(row[field]) if row[field] else None

    return Device(
        **{field: row[field] for field in _TEXT},
        kind=DeviceKind(row["kind"]),
        sm_count=int(row["sm_count"]),
        cores=int(row["cores"]),
        clock_mhz=float(row["clock_mhz"]),
        base_clock_mhz=number("base_clock_mhz"),
        peak_fp32_tflops=float(row["peak_fp32_tflops"]),
        peak_fp16_tflops=number("peak_fp16_tflops"),
        peak_fp64_tflops=number("peak_fp64_tflops"),
        tensor_fp16_tflops=float(row["tensor_fp16_tflops"]),
        bandwidth_gb_s=number("bandwidth_gb_s"),
        l2_mb=number("l2_mb"),
        memory_gb=number("memory_gb"),
        pcie_gb_s=number("pcie_gb_s"),
        year=int(row["year"]),
        aliases=tuple(alias for alias in row["aliases"].split(";") if alias),
    )


@cache
def _index() -> dict[str, Device]:
    """Every spelling; names as they stand go before names whose brand was dropped (GTX TITAN X, TITAN X)."""
    spellings = [
        (_keys(name), device) for device in list_devices() for name in (device.slug, device.name, *device.aliases)
    ]
    index: dict[str, Device] = {}
    for keys, device in spellings:
        index.setdefault(keys[0], device)
    for keys, device in spellings:
        for key in keys[1:]:
            index.setdefault(key, device)
    return index


def _keys(name: str) -> list[str]:
    """The name in lower-case letters and digits alone: in full, then with its leading brands dropped one by one."""
    words = "".join(letter if letter.isalnum() else " " for letter in name.lower()).split()
    keys = ["".join(words)]
    while len(words) > 1 and words[0] in _BRANDS:
        words = words[1:]
        keys.append("".join(words))
    return keys


def _find(name: str) -> Device | None:
    return next((_index()[key] for key in _keys(name) if key in _index()), None)


def _did_you_mean(text: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(_keys(text)[-1], list(_index()), n=1, cutoff=0.6)
    return f"did you mean '{_index()[near[0]].slug}'? " if near else ""
