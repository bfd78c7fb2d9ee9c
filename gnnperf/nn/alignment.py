"""Bringing what the network makes of two kinds of graphs together, as an option of training."""

from __future__ import annotations

import torch
from torch import Tensor

_MOMENTS = 5  # as in the paper; higher ones change little there


def central_moment_discrepancy(states: Tensor, others: Tensor, moments: int = _MOMENTS) -> Tensor:
    """Distance of two samples' distributions by their means and central moments, dimension by dimension.

    Zellinger et al.: Central moment discrepancy (CMD) for domain-invariant representation learning. ICLR 2017,
    equation 7; CDMPP (Hu et al. 2024) aligns devices and networks with it. States are squashed into (-1, 1) first, as
    the moments are weighted by powers of an interval's length.

    Args:
        states: ``[n, D]``, n >= 1.
        others: ``[m, D]``, m >= 1.
        moments: how many.
    """
    interval = 2.0
    states, others = torch.tanh(states), torch.tanh(others)
    mean, other_mean = states.mean(dim=0), others.mean(dim=0)
    distance = _norm(mean - other_mean) / interval
    centred, other_centred = states - mean, others - other_mean
    for order in range(2, moments + 1):
        moment = (centred**order).mean(dim=0) - (other_centred**order).mean(dim=0)
        distance = distance + _norm(moment) / interval**order
    return distance


def _norm(values: Tensor) -> Tensor:
    """Euclidean norm whose gradient is finite where the values are zero."""
    return torch.sqrt(values.square().sum() + 1e-12)
