"""How like the measured networks an input is: what its work consists of, and the distance to the nearest of them.

The descriptor needs the graph, the device and the conditions, and no trained weights: shares of time come from the
roofline. So the distance of an input does not change when a network is trained again on the same rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gnnperf.conditions import Conditions, Phase
from gnnperf.devices import Device
from gnnperf.devices.roofline import roofline_ms
from gnnperf.graph import GraphArrays, OpClass
from gnnperf.graph.operator_groups import OPERATOR_GROUPS, operator_groups
from gnnperf.quantile import weighted_quantile

FORMAT = 1
_CLOSE = 0.5  # half as far as measured networks typically are from other families
_UNIT_OF_ONE_FAMILY, _FAR_OF_ONE_FAMILY = 1.2, 1.5  # what the public measurements give for their ten families
_LAUNCH_MS = 0.005  # of one kernel; only its order of magnitude matters here

# What counts as a step of 1 in each respect: a quarter of the time spent on another kind of operator, a size four times
# as large. Declared rather than estimated: the spread of the few measured families says little about importance.
_SCALES = {
    **{f"share_{name}": 0.25 for name in OPERATOR_GROUPS},
    "launch_share": 0.25,  # of the time, in launching kernels rather than in running them
    "log_macs_per_operator": math.log(4),
    "log_flops_per_byte": math.log(4),
    "log_operators": math.log(4),
    "log_batch": math.log(16),  # mostly seen through the three above
    "training": 1.0,
}
DESCRIPTOR_FIELDS = tuple(_SCALES)
_SCALE = np.array(list(_SCALES.values()))


def describe(graph: GraphArrays, device: Device, conditions: Conditions) -> np.ndarray:
    """``[len(DESCRIPTOR_FIELDS)]`` what the work of a graph consists of, each quantity in units of its scale.

    The order of operators does not matter. Batch, device and precision enter through what they do to the work.
    """
    device_ms, launch_ms = operator_ms(graph, device, conditions)
    total_ms = float(device_ms.sum())
    kernels = max(np.count_nonzero(launch_ms), 1)
    moved = sum(float(graph.column(name).sum()) for name in ("input_bytes", "output_bytes", "weight_bytes"))
    shares = np.bincount(operator_groups(graph), weights=device_ms, minlength=len(OPERATOR_GROUPS)) / max(
        total_ms, 1e-12
    )
    sizes = (
        launch_share(device_ms, launch_ms),
        math.log1p(float(graph.column("macs").sum()) / kernels),
        math.log1p(float(graph.column("flops").sum()) / max(moved, 1.0)),
        math.log(kernels),
        math.log(max(graph.batch, 1)),
        float(conditions.phase != Phase.INFERENCE),
    )
    return np.concatenate([shares, sizes]) / _SCALE


def launch_share(device_ms: np.ndarray, launch_ms: np.ndarray) -> float:
    """Which part of the time of ``[N]`` operators, see :func:`operator_ms`, goes into launching their kernels."""
    total_launch_ms = float(launch_ms.sum())
    return total_launch_ms / max(total_launch_ms + float(device_ms.sum()), 1e-12)


def operator_ms(graph: GraphArrays, device: Device, conditions: Conditions) -> tuple[np.ndarray, np.ndarray]:
    """``[N]`` roofline times and ``[N]`` launch times: which operators matter, before anything was trained."""
    launch_ms = np.where(graph.op_class == OpClass.VIEW, 0.0, _LAUNCH_MS)
    return roofline_ms(graph, device, conditions.precision), launch_ms


class MeasuredNetwork(NamedTuple):
    """One measured network that stands for the training rows that are like it."""

    model: str
    family: str
    stack: str
    batch: int
    phase: str

    def __str__(self) -> str:
        return f"{self.model} ({self.stack}, batch {self.batch}, {self.phase})"


@dataclass(frozen=True)
class Similarity:
    """The nearest measured network of one input.

    Attributes:
        nearest: that network.
        distance: to it. 0: measured as it is; 1: as far as measured networks typically are from other families.
        words: ``close to``, ``at the edge of`` or ``far from``, to stand before "the training data".
    """

    nearest: MeasuredNetwork
    distance: float
    words: str

    @property
    def is_far(self) -> bool:
        """Whether the user should be warned."""
        return self.words == "far from"

    def __str__(self) -> str:
        return (
            f"{self.words} the training data: the nearest measured network is {self.nearest}, "
            f"distance {self.distance:.1f}"
        )


class MeasuredNetworks:
    """Measured networks that stand for all whole-model rows of a training set.

    Args:
        networks: P of them.
        descriptors: ``[P, len(DESCRIPTOR_FIELDS)]`` as :func:`describe` gives them.
        scale: ``unit`` and ``far`` below, where they are known already.

    Attributes:
        unit: distance of descriptors that counts as 1: the median, over networks, to the nearest of another family.
        far: distance (in that unit) beyond which an input is far: it is more unlike the measured networks than 95 % of
            them are unlike the other families.

    Raises:
        ValueError: there are no networks, the descriptors are not of that shape, or a number is not a finite one.
    """

    def __init__(
        self, networks: Sequence[MeasuredNetwork], descriptors: np.ndarray, scale: tuple[float, float] | None = None
    ) -> None:
        self.networks = tuple(networks)
        self.descriptors = np.asarray(descriptors, np.float64)
        if not self.networks or self.descriptors.shape != (len(self.networks), len(DESCRIPTOR_FIELDS)):
            raise ValueError(f"{len(self.networks)} measured networks with descriptors {self.descriptors.shape}")
        self.unit, self.far = self._between_families() if scale is None else scale
        if not (np.isfinite(self.descriptors).all() and 0 < self.unit < math.inf and 0 < self.far < math.inf):
            raise ValueError("a number of the measured networks is not a finite one")

    def _between_families(self) -> tuple[float, float]:
        """Unit and far, from distances to the nearest network of another family; all families weigh equally."""
        family = np.array([network.family for network in self.networks])
        names, code, size = np.unique(family, return_inverse=True, return_counts=True)
        if len(names) == 1:
            return _UNIT_OF_ONE_FAMILY, _FAR_OF_ONE_FAMILY
        between = _distances(self.descriptors, self.descriptors)
        between[code[:, None] == code[None, :]] = np.inf
        nearest = between.min(axis=1)
        median, far = (weighted_quantile(nearest, 1 / size[code], level) for level in (0.5, 0.95))
        unit = max(median, 1e-3)
        return unit, max(far / unit, 1.0)

    def distances(self, descriptors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``[G]`` number of the nearest network and ``[G]`` distance to it, of ``[G, D]`` descriptors."""
        between = _distances(np.asarray(descriptors, np.float64), self.descriptors)
        nearest = between.argmin(axis=1)
        return nearest, between[np.arange(len(between)), nearest] / self.unit

    def similarity(self, number: int, distance: float) -> Similarity:
        """What :meth:`distances` found for one input, in words."""
        words = "close to" if distance <= _CLOSE else "at the edge of" if distance <= self.far else "far from"
        return Similarity(self.networks[number], float(distance), words)

    def to_json(self) -> str:
        """Text for a file: a line a network."""
        rows = [
            json.dumps([*network, [round(float(value), 3) for value in descriptor]], separators=(",", ":"))
            for network, descriptor in zip(self.networks, self.descriptors, strict=True)
        ]
        head = f'{{"format": {FORMAT}, "fields": {json.dumps(DESCRIPTOR_FIELDS)},\n'
        scale = f'"unit": {self.unit:.6g}, "far": {self.far:.6g}, "networks": [\n'
        return head + scale + ",\n".join(rows) + "\n]}\n"

    @classmethod
    def from_json(cls, text: str) -> MeasuredNetworks | None:
        """Inverse of :meth:`to_json`; None where the descriptors are those of another version.

        Raises:
            ValueError, TypeError, KeyError: the text is no such file.
        """
        content = json.loads(text)
        if content["format"] != FORMAT or tuple(content["fields"]) != DESCRIPTOR_FIELDS:
            return None
        networks = [
            MeasuredNetwork(str(model), str(family), str(stack), int(batch), str(phase))
            for model, family, stack, batch, phase, _ in content["networks"]
        ]
        descriptors = np.array([row[-1] for row in content["networks"]], np.float64)
        return cls(networks, descriptors, (float(content["unit"]), float(content["far"])))


def _distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``[A, B]`` Euclidean distances."""
    squared = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2 * a @ b.T
    return np.sqrt(np.maximum(squared, 0.0))
