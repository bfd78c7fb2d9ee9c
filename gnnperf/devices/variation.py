"""Devices that differ from one in some figures: the points of a design space."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gnnperf.devices.device import Device
from gnnperf.devices.user_file import DeviceFile, vary
from gnnperf.errors import DeviceError

VARIABLES = (
    "clock_mhz",
    "bandwidth_gb_s",
    "cores",
    "sm_count",
    "peak_fp32_tflops",
    "peak_fp16_tflops",
    "tensor_fp16_tflops",
    "l2_mb",
    "pcie_gb_s",
)
"""Figures of a device that a predicted latency depends on."""
UNORDERED = ("tensor_fp16_tflops", "l2_mb")
"""Those among them of which more may be predicted to be slower."""
MOST_POINTS = 10_000


@dataclass(frozen=True)
class Range:
    """Evenly spaced values of one figure.

    Attributes:
        name: one of :data:`VARIABLES`.
        values: ascending or descending, in the figure's unit; whole numbers for what is counted.
    """

    name: str
    values: tuple[float, ...]


def parse_range(text: str) -> Range:
    """``"clock_mhz=1200:2000:5"`` -> five values from 1200 to 2000.

    Values of what is counted (cores, multiprocessors) are rounded.

    Raises:
        DeviceError: the text is no such range, the figure is unknown or changes no latency, or a value is there twice.
    """
    name, _, bounds = text.partition("=")
    name = name.strip()
    if name in DeviceFile.model_fields and name not in VARIABLES:
        raise DeviceError(f"{name} does not change a predicted latency: vary {', '.join(VARIABLES)}")
    if name not in VARIABLES:
        raise DeviceError(f"{name!r} is no figure of a device that can be varied: choose from {', '.join(VARIABLES)}")
    try:
        start, stop, count = bounds.split(":")
        first, last, number = float(start), float(stop), int(count)
    except ValueError:
        raise DeviceError(
            f"{text!r} is no range: write {name}=START:STOP:COUNT, such as clock_mhz=1200:2000:5"
        ) from None
    if not (math.isfinite(first) and math.isfinite(last)):
        raise DeviceError(f"{text!r} has an end that is not a finite number")
    if not 2 <= number <= MOST_POINTS:
        raise DeviceError(f"{text!r}: the count has to be from 2 to {MOST_POINTS:,}")
    values = np.linspace(first, last, number).tolist()
    if name in ("cores", "sm_count"):
        values = [round(value) for value in values]
    if len(set(values)) < number:
        raise DeviceError(f"{text!r} holds a value twice: choose ends that differ more, or a smaller count")
    return Range(name, tuple(values))


def design_space(base: Device, ranges: Sequence[Range]) -> list[tuple[dict[str, float], Device]]:
    """Every combination of values, the last range changing fastest, and the device that it makes of the base.

    Figures that depend on a changed one follow in proportion (:func:`gnnperf.devices.user_file.vary`).

    Raises:
        DeviceError: a figure is given twice, there are too many combinations, or one is no possible device.
    """
    names = [each.name for each in ranges]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DeviceError(f"{twice} is varied twice: give it once, with all its values")
    points = math.prod(len(each.values) for each in ranges)
    if points > MOST_POINTS:
        raise DeviceError(f"{points:,} combinations are more than {MOST_POINTS:,}: choose smaller counts")
    space = []
    for values in itertools.product(*(each.values for each in ranges)):
        point = dict(zip(names, values, strict=True))
        space.append((point, vary(base, point)))
    return space
