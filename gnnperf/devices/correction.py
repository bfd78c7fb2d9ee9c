"""What measurements on a device say about it beyond its data sheet: factors on the parts of every prediction for it.

``gnnperf adapt`` fits them (:mod:`gnnperf.adaptation`) and writes them into a device file, as ``scale_NAME`` keys.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from gnnperf.errors import DeviceError
from gnnperf.graph.operator_groups import OPERATOR_GROUPS

SCALES = (
    "launch",
    "device",
    "constant",
    "training",
    *(f"launch_{group}" for group in OPERATOR_GROUPS),
    *(f"device_{group}" for group in OPERATOR_GROUPS),
)
"""Names of the factors: ``launch`` on the times that the host needs to launch operators, ``device`` on the times that
the device needs to run them, those of operator groups on top of these, ``constant`` on what every run costs, and
``training`` on training steps as a whole."""
LARGEST_SCALE = 100.0
_PREFIX = "scale_"
_MEASUREMENTS, _PREDICTOR = "adapted_measurements", "adapted_predictor"


@dataclass(frozen=True, slots=True)
class Correction:
    """A device's factors.

    Attributes:
        scales: names from :data:`SCALES` and factors; 1 where a name is absent.
        measurements: how many they were fitted to.
        predictor: digest of the network that they correct; they mean nothing for another.
    """

    scales: tuple[tuple[str, float], ...]
    measurements: int
    predictor: str

    def to_keys(self) -> dict[str, Any]:
        """The keys and values that a device file holds."""
        scales = {_PREFIX + name: value for name, value in self.scales}
        return {_MEASUREMENTS: self.measurements, _PREDICTOR: self.predictor, **scales}


def split_correction(values: dict[str, Any], where: str) -> tuple[dict[str, Any], Correction | None]:
    """The keys of a device file without those of a correction, and the correction; None where there is none.

    Raises:
        DeviceError: a scale is unknown or no positive factor, or the correction is incomplete.
    """
    own = {_MEASUREMENTS, _PREDICTOR}
    found = {key: value for key, value in values.items() if key in own or str(key).startswith(_PREFIX)}
    rest = {key: value for key, value in values.items() if key not in found}
    if not found:
        return rest, None
    for key in sorted(own - set(found)):
        raise DeviceError(f"{where}: {key} is missing, which `gnnperf adapt` writes beside the scales")
    measurements, predictor = found.pop(_MEASUREMENTS), found.pop(_PREDICTOR)
    if isinstance(measurements, bool) or not isinstance(measurements, int) or not 0 <= measurements < 10**9:
        raise DeviceError(f"{where}: {_MEASUREMENTS} has to be a whole number, not {measurements!r}")
    if not re.fullmatch(r"[0-9a-f]{16}", str(predictor)):
        raise DeviceError(
            f"{where}: {_PREDICTOR} has to be the 16 digits that `gnnperf adapt` writes, not {predictor!r}"
        )
    return rest, Correction(
        tuple(_scale(key, value, where) for key, value in found.items()), measurements, str(predictor)
    )


def _scale(key: str, value: Any, where: str) -> tuple[str, float]:
    name = str(key).removeprefix(_PREFIX)
    if name not in SCALES:
        near = get_close_matches(name, SCALES, n=1, cutoff=0.5)
        hint = f": did you mean {_PREFIX}{near[0]}?" if near else ""
        raise DeviceError(f"{where}: unknown key {key!r}{hint}")
    number = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    if not 1 / LARGEST_SCALE <= number <= LARGEST_SCALE:
        raise DeviceError(
            f"{where}: {key} has to be a factor from {1 / LARGEST_SCALE:g} to {LARGEST_SCALE:g}, not {value!r}"
        )
    return name, number
