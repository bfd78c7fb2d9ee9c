"""Losses on the relative error of a latency."""

from __future__ import annotations

import torch
from torch import Tensor


def log_ratio_loss(predicted_ms: Tensor, latency_ms: Tensor, weight: Tensor, beta: float) -> Tensor:
    """Weighted smooth L1 of ``log(predicted / measured)``.

    Near zero the logarithm of a ratio is the relative error, so the loss follows the MAPE, but it treats twice too
    long and half too long alike; below ``beta`` it is quadratic, so that repeat noise does not pull.

    Args:
        predicted_ms: ``[G]``.
        latency_ms: ``[G]`` measured.
        weight: ``[G]``.
        beta: where the loss turns from quadratic to linear.
    """
    error = torch.log(predicted_ms / latency_ms).abs()
    loss = torch.where(error < beta, 0.5 * error.square() / beta, error - 0.5 * beta)
    return (loss * weight).sum() / weight.sum()


def maple_loss(predicted_ms: Tensor, latency_ms: Tensor, weight: Tensor, beta: float) -> Tensor:
    """Mean absolute percentage and logarithmic error (MAPLE; Wang et al. 2020, PerfNet): ``APE * |log ratio|``.

    Arguments as :func:`log_ratio_loss`; ``beta`` is not used.
    """
    ratio = predicted_ms / latency_ms
    return ((ratio - 1).abs() * torch.log(ratio).abs() * weight).sum() / weight.sum()


LOSSES = {"log_ratio": log_ratio_loss, "maple": maple_loss}
