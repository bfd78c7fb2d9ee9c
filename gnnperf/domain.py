"""What a predictor has seen in training, and words for what lies outside of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from gnnperf.conditions import Conditions, Phase
from gnnperf.devices import Device, get_device
from gnnperf.devices.features import DEVICE_FIELDS, device_features
from gnnperf.errors import DeviceError
from gnnperf.graph import GraphArrays, OpClass

# A class that takes less of the time than this cannot spoil the prediction much.
_SHARE_WORTH_A_WARNING = 0.05
_BEYOND = 1.5  # a quantity is far outside when it leaves the range seen by more than this factor

UNMEASURED = ("operators", "device", "device_distance", "device_kind", "stack", "precision", "phase")
"""Respects in which an input may be unlike every measurement; see :meth:`Domain.unmeasured`."""
_SPEEDS = [DEVICE_FIELDS.index(name) for name in ("peak_fp32_flops", "bandwidth_bytes_s", "sm_count")]


@dataclass(frozen=True)
class Domain:
    """Ranges and names over the whole-model rows of a training set.

    Attributes:
        op_classes: names of operator classes in trained whole models.
        devices: slugs of devices with whole-model rows.
        stacks: software stacks.
        precisions: number formats.
        phases: ``inference`` and/or ``training`` (its parts count as training).
        batch: smallest and largest batch.
        macs: smallest and largest multiply-accumulates of one execution.
        operators: smallest and largest number of operators.
    """

    op_classes: tuple[str, ...]
    devices: tuple[str, ...]
    stacks: tuple[str, ...]
    precisions: tuple[str, ...]
    phases: tuple[str, ...]
    batch: tuple[int, int]
    macs: tuple[float, float]
    operators: tuple[int, int]

    def to_dict(self) -> dict:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict) -> Domain:
        """Inverse of :meth:`to_dict`."""
        return cls(**{name: tuple(value) for name, value in values.items()})

    def unmeasured(
        self, graph: GraphArrays, operator_ms: np.ndarray, device: Device, conditions: Conditions
    ) -> np.ndarray:
        """``[len(UNMEASURED)]`` in which respects no measured whole network was like an input; all 0 where all were.

        ``operators`` is the share of the time in classes that no measured network had, ``device_distance`` the largest
        log ratio of peak, bandwidth and multiprocessors to the nearest measured device; the others are 0 or 1.

        Args:
            graph: the graph.
            operator_ms: ``[N]`` times of its operators; only their shares matter.
            device: the device.
            conditions: the conditions.
        """
        unknown = ~self._measured_class[graph.op_class]
        found = dict.fromkeys(UNMEASURED, 0.0)
        if unknown.any():
            found["operators"] = float(operator_ms[unknown].sum()) / max(float(operator_ms.sum()), 1e-12)
        if device.slug not in self.devices:
            found["device"] = 1.0
            kinds, speeds = self._measured_devices
            if len(speeds):
                ratios = np.abs(speeds - np.log(device_features(device)[_SPEEDS])).max(axis=1)
                found["device_distance"] = float(ratios.min())
                found["device_kind"] = float(device.kind not in kinds)
        found["stack"] = float(conditions.stack not in self.stacks)
        found["precision"] = float(conditions.precision not in self.precisions)
        found["phase"] = float(phase_of(conditions) not in self.phases)
        return np.array(list(found.values()))

    @cached_property
    def _measured_class(self) -> np.ndarray:
        """``[len(OpClass)]`` whether measured networks had the class; a view costs nothing, so it is never unknown."""
        return np.array([c == OpClass.VIEW or c.name.lower() in self.op_classes for c in OpClass])

    @cached_property
    def _measured_devices(self) -> tuple[set[str], np.ndarray]:
        """Kinds, and ``[D, 3]`` logs of the speeds, of the measured devices that the registry knows."""
        devices = []
        for slug in self.devices:
            try:
                devices.append(get_device(slug))
            except DeviceError:  # its figures are unknown here, so nothing can be near it
                continue
        speeds = [np.log(device_features(device)[_SPEEDS]) for device in devices]
        return {device.kind for device in devices}, np.array(speeds).reshape(-1, len(_SPEEDS))

    def warnings(self, graph: GraphArrays, node_ms: np.ndarray, device: Device, conditions: Conditions) -> list[str]:
        """One sentence for each respect in which a prediction leaves what was seen; none where it does not.

        Args:
            graph: the graph that was predicted.
            node_ms: ``[N]`` its operators' predicted times.
            device: the device.
            conditions: the conditions.
        """
        found = []
        total_ms = max(float(node_ms.sum()), 1e-12)
        for op_class in np.unique(graph.op_class):
            name = OpClass(int(op_class)).name.lower()
            share = float(node_ms[graph.op_class == op_class].sum()) / total_ms
            if name not in self.op_classes and share >= _SHARE_WORTH_A_WARNING:
                found.append(
                    f"far from the training data: {share:.0%} of the time is in {name} operators, "
                    "of which no measured network had any"
                )
        for what, value, (low, high) in (
            ("batch", graph.batch, self.batch),
            ("MACs", float(graph.column("macs").sum()), self.macs),
            ("operators", graph.num_nodes, self.operators),
        ):
            if value > _BEYOND * high:
                found.append(f"far from the training data: {value:.4g} {what}, at most {high:.4g} were measured")
            elif value * _BEYOND < low:
                found.append(f"far from the training data: {value:.4g} {what}, at least {low:.4g} were measured")
        if device.slug not in self.devices:
            known = f"and from {device.base}, which was" if device.base in self.devices else "alone"
            if device.correction is not None:
                known = f"and {device.correction.measurements} measurements on it"
            measured = "not trained on" if device.correction is not None else "not measured"
            found.append(f"{device.name} was {measured}: the prediction follows from its description {known}")
        if conditions.stack not in self.stacks:
            found.append(f"stack {conditions.stack} was not measured on whole networks")
        if conditions.precision not in self.precisions:
            found.append(
                f"precision {conditions.precision} was not measured: its latency follows from bytes and peak alone"
            )
        if phase_of(conditions) not in self.phases:
            found.append(f"no {phase_of(conditions)} latencies were measured")
        return found


def phase_of(conditions: Conditions) -> str:
    """``inference`` or ``training``, as whose part forward and backward count."""
    return "inference" if conditions.phase == Phase.INFERENCE else "training"
