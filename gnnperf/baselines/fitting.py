"""How the baselines that are neural networks are fitted: one loop, seeded, for all of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

Loss = Callable[[Tensor, Tensor], Tensor]
"""``(predicted_ms [B], measured_ms [B])`` to a scalar."""
Gather = Callable[[Tensor], tuple[Tensor, ...]]
"""Numbers of rows ``[B]`` to the arguments of a network."""


def squared_log_error(predicted_ms: Tensor, latency_ms: Tensor) -> Tensor:
    """Mean square of ``log(predicted / measured)``."""
    return torch.log(predicted_ms / latency_ms).square().mean()


def maple(predicted_ms: Tensor, latency_ms: Tensor) -> Tensor:
    """MAPLE, the loss of PerfNet, PerfNetV2 and ResPerfNet: :func:`gnnperf.nn.losses.maple_loss`, unweighted."""
    from gnnperf.nn.losses import maple_loss

    return maple_loss(predicted_ms, latency_ms, torch.ones_like(latency_ms), beta=0.0)


class Standardiser:
    """Columns to mean 0 and standard deviation 1, by what was seen in training; constant columns become 0."""

    def __init__(self, values: np.ndarray) -> None:
        self.mean = values.mean(axis=0)
        deviation = values.std(axis=0)
        self.scale = np.where(deviation > 1e-9, deviation, np.inf)

    def __call__(self, values: np.ndarray) -> Tensor:
        """``[n, F]`` float32."""
        return torch.from_numpy(((values - self.mean) / self.scale).astype(np.float32))


def from_table(inputs: Tensor) -> Gather:
    """Rows of ``inputs`` ``[n, F]``, for networks of one argument."""
    return lambda rows: (inputs[rows],)


def dense_layers(*widths: int) -> list[nn.Module]:
    """Linear layers from each width to the next, a ReLU behind each."""
    return [part for inputs, outputs in pairwise(widths) for part in (nn.Linear(inputs, outputs), nn.ReLU())]


def start_at_mean(last: nn.Linear, latency_ms: np.ndarray) -> None:
    """Let a network whose last layer gives log ms start at the geometric mean of the latencies."""
    with torch.no_grad():
        last.bias.fill_(float(np.log(latency_ms).mean()))
        last.weight.mul_(0.1)


def fit_module(
    make: Callable[[], nn.Module],
    gather: Gather,
    latency_ms: np.ndarray,
    loss: Loss,
    *,
    epochs: int,
    batch_size: int = 512,
    learning_rate: float = 2e-3,
    seed: int = 0,
) -> nn.Module:
    """Fit a network that gives milliseconds, by Adam with a learning rate that falls to nothing along a cosine.

    Seeded, and the caller's random state is left as it was.

    Args:
        make: makes the untrained network, whose arguments are what ``gather`` gives and whose result is ``[B]`` ms.
        gather: see :data:`Gather`.
        latency_ms: ``[n]``.
        loss: of a batch.
        epochs: passes over the rows.
        batch_size: rows a step.
        learning_rate: largest one.
        seed: of weights, order and dropout.

    Returns:
        The network, in evaluation mode.
    """
    target = torch.from_numpy(np.asarray(latency_ms, np.float32))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = make().train()
        optimizer = torch.optim.Adam(module.parameters(), lr=learning_rate)
        steps = epochs * -(-len(target) // batch_size)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, total_steps=steps, pct_start=0.1)
        for _ in range(epochs):
            for rows in torch.randperm(len(target)).split(batch_size):
                optimizer.zero_grad()
                loss(module(*gather(rows)), target[rows]).backward()
                nn.utils.clip_grad_norm_(module.parameters(), 1.0)
                optimizer.step()
                schedule.step()
    return module.eval()
