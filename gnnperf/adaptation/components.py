"""What a predicted latency is made of, and how it follows the scales that a device is corrected by.

    latency = training * (p-norm(sum of launch times, sum of device times) + constant) + copy

as in docs/network.md. The exported network says the whole alone. Its two sides are seen by asking for a device that is
ten thousand times as fast in every rate, whose time is launches, and for one that is as much slower, whose time is
work: ratios of rates stay as they are, and the network's own corrections see nothing else of a device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from gnnperf.conditions import Conditions, Phase
from gnnperf.devices import Device
from gnnperf.devices.correction import SCALES, Correction
from gnnperf.graph import GraphArrays
from gnnperf.graph.operator_groups import OPERATOR_GROUPS, operator_groups

if TYPE_CHECKING:
    from gnnperf.predictor import Predictor

_FAR = 1e4
_OVERLAP = 6.0  # what the network's own exponent starts from; it matters where both sides are about equal
_GROUPS = len(OPERATOR_GROUPS)
_COMMON = len(SCALES) - 2 * _GROUPS


@dataclass(frozen=True)
class Components:
    """Predictions of G graphs, taken apart; milliseconds.

    Attributes:
        latency_ms: ``[G]`` as the network says them.
        launch_ms: ``[G, K]`` times of launching operators, by operator group.
        device_ms: ``[G, K]`` times of running them.
        constant_ms: ``[G]`` of every run.
        copy_ms: ``[G]`` of copying the input, in windows that include it.
        training: ``[G]`` 1 where the phase belongs to a training step, else 0.
    """

    latency_ms: np.ndarray
    launch_ms: np.ndarray
    device_ms: np.ndarray
    constant_ms: np.ndarray
    copy_ms: np.ndarray
    training: np.ndarray

    def __getitem__(self, chosen) -> Components:
        """Those of some graphs."""
        return Components(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def __len__(self) -> int:
        return len(self.latency_ms)

    @classmethod
    def concatenate(cls, parts: Sequence[Components]) -> Components:
        """All graphs of several."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def scaled(self, log_scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``[G]`` latencies under other scales, and ``[G, len(SCALES)]`` derivatives of their logarithms.

        Args:
            log_scales: ``[len(SCALES)]`` logarithms of the scales; zeros give ``latency_ms``.
        """
        model_ms, gradient = self._model(log_scales)
        return self.latency_ms * (model_ms / self._model(np.zeros(len(SCALES)))[0]), gradient

    def _model(self, log_scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        launch, device, constant, training = log_scales[:_COMMON]
        launch_ms = self.launch_ms * np.exp(launch + log_scales[_COMMON : _COMMON + _GROUPS])
        device_ms = self.device_ms * np.exp(device + log_scales[_COMMON + _GROUPS :])
        busy_ms, launch_weight, device_weight = _overlap(launch_ms.sum(axis=1), device_ms.sum(axis=1))
        constant_ms = self.constant_ms * np.exp(constant)
        factor = np.exp(training * self.training)
        latency_ms = factor * (busy_ms + constant_ms) + self.copy_ms
        share = factor / latency_ms
        by_launch = (share * launch_weight)[:, None] * launch_ms
        by_device = (share * device_weight)[:, None] * device_ms
        common = [
            by_launch.sum(axis=1),
            by_device.sum(axis=1),
            share * constant_ms,
            share * (busy_ms + constant_ms) * self.training,
        ]
        return latency_ms, np.column_stack([*common, by_launch, by_device])


def _overlap(launch_ms: np.ndarray, device_ms: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``[G]`` p-norm of both sides, and its derivatives with respect to them."""
    larger = np.maximum(np.maximum(launch_ms, device_ms), 1e-12)
    busy_ms = larger * ((launch_ms / larger) ** _OVERLAP + (device_ms / larger) ** _OVERLAP) ** (1 / _OVERLAP)
    return busy_ms, (launch_ms / busy_ms) ** (_OVERLAP - 1), (device_ms / busy_ms) ** (_OVERLAP - 1)


def take_apart(
    predictor: Predictor, graphs: Sequence[GraphArrays], cases: Sequence[tuple[Device, Conditions]]
) -> Components:
    """Components of predictions; a correction that a device has already does not count.

    Args:
        predictor: the network.
        graphs: G graphs.
        cases: device and conditions of each.
    """
    return _apart(predictor, graphs, cases)[0]


def _apart(
    predictor: Predictor, graphs: Sequence[GraphArrays], cases: Sequence[tuple[Device, Conditions]]
) -> tuple[Components, list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """The components; for each graph ``[N]`` its operators' parts of the latency, launch and device times."""
    latency_ms, node_ms = predictor.network_ms(graphs, cases)
    fast_ms, launch_ms = predictor.network_ms(graphs, cases, speed=_FAR)
    slow_ms, device_ms = predictor.network_ms(graphs, cases, speed=1 / _FAR)
    device_ms = [times / _FAR for times in device_ms]
    constant_ms = np.maximum([total - times.sum() for total, times in zip(fast_ms, launch_ms, strict=True)], 0.0)
    rest_ms = np.array([total / _FAR - times.sum() for total, times in zip(slow_ms, device_ms, strict=True)])
    # What float32 cannot tell apart from the sum of the operators is no copy.
    copy_ms = np.where(rest_ms > 1e-4 * slow_ms / _FAR, np.maximum(rest_ms - constant_ms / _FAR, 0.0), 0.0)
    parts = Components(
        latency_ms=np.asarray(latency_ms, float),
        launch_ms=_by_group(graphs, launch_ms),
        device_ms=_by_group(graphs, device_ms),
        constant_ms=constant_ms,
        copy_ms=copy_ms,
        training=np.array([conditions.phase != Phase.INFERENCE for _, conditions in cases], float),
    )
    return parts, node_ms, launch_ms, device_ms


def _by_group(graphs: Sequence[GraphArrays], times_ms: Sequence[np.ndarray]) -> np.ndarray:
    """``[G, K]`` sums over operator groups."""
    return np.stack(
        [
            np.bincount(operator_groups(graph), weights=times, minlength=_GROUPS)
            for graph, times in zip(graphs, times_ms, strict=True)
        ]
    )


def corrected(
    predictor: Predictor, graphs: Sequence[GraphArrays], cases: Sequence[tuple[Device, Conditions]]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """``[G]`` latencies and each graph's ``[N]`` operators' parts, with the corrections that the devices have.

    Args:
        predictor: the network.
        graphs: G graphs.
        cases: device and conditions of each; devices without a correction are predicted as they are.
    """
    parts, node_ms, launch_ms, device_ms = _apart(predictor, graphs, cases)
    latency_ms = parts.latency_ms.copy()
    for i, (graph, (device, _)) in enumerate(zip(graphs, cases, strict=True)):
        if device.correction is None:
            continue
        logs, one = log_scales(device.correction), parts[i : i + 1]
        latency_ms[i] = one.scaled(logs)[0][0]
        before, after = (_node_shares(one, scales, graph, launch_ms[i], device_ms[i]) for scales in (logs * 0, logs))
        node_ms[i] = node_ms[i] * latency_ms[i] / parts.latency_ms[i] * after / np.maximum(before, 1e-30)
    return latency_ms, node_ms


def _node_shares(
    one: Components, scales: np.ndarray, graph: GraphArrays, launch_ms: np.ndarray, device_ms: np.ndarray
) -> np.ndarray:
    """``[N]`` which share of its latency each operator of one graph takes."""
    gradient = one.scaled(scales)[1][0]  # a group's share in each side
    group = operator_groups(graph)
    sides = (
        (launch_ms, one.launch_ms[0], gradient[_COMMON : _COMMON + _GROUPS]),
        (device_ms, one.device_ms[0], gradient[_COMMON + _GROUPS :]),
    )
    return sum(times * (share / np.maximum(total, 1e-30))[group] for times, total, share in sides)


def log_scales(correction: Correction) -> np.ndarray:
    """``[len(SCALES)]`` logarithms of a correction's scales; 0 where it has none."""
    scales = dict(correction.scales)
    return np.log([scales.get(name, 1.0) for name in SCALES])
