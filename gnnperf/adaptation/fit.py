"""Fit a device's scales to measurements: maximum a posteriori, so that what these cannot tell stays as it was.

The scales are random effects of the device, as those of measured devices are in the network itself: normal around no
change in the logarithm (Laird and Ware 1982). Without measurements all stay 1; the network is not touched, so that
predictions for other devices are what they were.
"""

from __future__ import annotations

import numpy as np

from gnnperf.adaptation.components import Components
from gnnperf.devices.correction import LARGEST_SCALE, SCALES, Correction

# Prior standard deviations of the logarithms. Hosts differ more than devices do from their data sheets; groups of
# operators deviate from what all of them do.
_DEVIATION = {"launch": 0.6, "device": 0.3, "constant": 1.0, "training": 0.15}
_LAUNCH_GROUP_DEVIATION, _DEVICE_GROUP_DEVIATION = 0.3, 0.2
# What is left between a network and its measurement: which of these is decided by the measurements.
_NOISE = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
_STEPS, _TOLERANCE = 100, 1e-6


def prior_deviation() -> np.ndarray:
    """``[len(SCALES)]`` standard deviations of the logarithms of the scales."""
    groups = {"launch_": _LAUNCH_GROUP_DEVIATION, "device_": _DEVICE_GROUP_DEVIATION}
    return np.array([_DEVIATION.get(name) or groups[name[: len("launch_")]] for name in SCALES])


def fit_scales(parts: Components, latency_ms: np.ndarray) -> np.ndarray:
    """``[len(SCALES)]`` logarithms of the scales.

    The noise is the one under which the measurements are likeliest (Laplace's approximation of the evidence; MacKay:
    Bayesian interpolation. Neural Computation 4, 1992): many measurements that the scales explain are followed closely;
    with few or erratic ones, the scales stay near 1.

    Args:
        parts: predictions for the n measured cases, taken apart.
        latency_ms: ``[n]`` measured.
    """
    if not len(parts):
        return np.zeros(len(SCALES))
    precision = prior_deviation() ** -2
    fits = [_fit(parts, np.log(latency_ms), precision, noise) for noise in _NOISE]
    return max(fits, key=lambda fit: fit[1])[0]


def fit_correction(parts: Components, latency_ms: np.ndarray, predictor_digest: str) -> Correction:
    """The same as what a device file holds.

    Args:
        parts: predictions for the n measured cases, taken apart.
        latency_ms: ``[n]`` measured.
        predictor_digest: of the network that made them.
    """
    scales = np.exp(np.clip(fit_scales(parts, latency_ms), -np.log(LARGEST_SCALE), np.log(LARGEST_SCALE)))
    named = zip(SCALES, scales.tolist(), strict=True)
    changed = tuple((name, float(f"{scale:.5g}")) for name, scale in named if abs(scale - 1) > 5e-5)
    return Correction(changed, len(parts), predictor_digest)


def _fit(parts: Components, log_measured: np.ndarray, precision: np.ndarray, noise: float) -> tuple[np.ndarray, float]:
    """Scales by damped Gauss-Newton steps (Levenberg, Marquardt), and the log evidence of the noise."""

    def loss(scales: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        predicted_ms, gradient = parts.scaled(scales)
        residual = log_measured - np.log(predicted_ms)
        return float((residual / noise) @ (residual / noise) + precision @ scales**2), residual, gradient

    scales, damping = np.zeros(len(precision)), 1e-3
    value, residual, gradient = loss(scales)
    for _ in range(_STEPS):
        curvature = gradient.T @ gradient / noise**2 + np.diag(precision)
        slope = gradient.T @ residual / noise**2 - precision * scales
        step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), slope)
        new_value, new_residual, new_gradient = loss(scales + step)
        if not new_value < value:
            damping *= 10
            if damping > 1e6:
                break
            continue
        done = value - new_value < _TOLERANCE * (1 + value)
        scales, value, residual, gradient = scales + step, new_value, new_residual, new_gradient
        damping = max(damping / 10, 1e-9)
        if done:
            break
    curvature = gradient.T @ gradient / noise**2 + np.diag(precision)
    volume = np.linalg.slogdet(curvature)[1] - np.log(precision).sum()
    return scales, -0.5 * (value + volume) - len(log_measured) * np.log(noise)
