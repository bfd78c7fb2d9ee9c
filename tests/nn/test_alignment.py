"""Central moment discrepancy is a distance of distributions."""

import pytest
import torch

from gnnperf.nn.alignment import central_moment_discrepancy


def sample(rows: int, shift: float = 0.0, scale: float = 1.0, seed: int = 0) -> torch.Tensor:
    return shift + scale * torch.randn(rows, 8, generator=torch.Generator().manual_seed(seed))


def test_the_same_sample_is_at_no_distance_and_its_gradient_is_finite():
    states = sample(50).requires_grad_()
    distance = central_moment_discrepancy(states, states.detach())
    assert distance.item() == pytest.approx(0, abs=1e-5)
    distance.backward()
    assert torch.isfinite(states.grad).all()


def test_means_and_spreads_that_differ_are_seen_and_order_and_size_are_not():
    same = central_moment_discrepancy(sample(4000), sample(3000, seed=1))
    shifted = central_moment_discrepancy(sample(4000), sample(3000, shift=0.5, seed=1))
    spread = central_moment_discrepancy(sample(4000), sample(3000, scale=0.3, seed=1))
    assert same < 0.1 < spread and same < 0.1 < shifted
    states, others = sample(40), sample(30, shift=1, seed=1)
    distance = central_moment_discrepancy(states, others)
    assert central_moment_discrepancy(others.flip(0), states) == pytest.approx(distance.item(), rel=1e-5)


def test_two_moments_against_the_formula():
    states, others = torch.tensor([[0.1], [0.3]]), torch.tensor([[-0.2], [0.2]])
    a, b = torch.tanh(states)[:, 0], torch.tanh(others)[:, 0]
    expected = abs(a.mean() - b.mean()) / 2 + abs(a.var(correction=0) - b.var(correction=0)) / 4
    assert central_moment_discrepancy(states, others, moments=2).item() == pytest.approx(expected.item(), rel=1e-4)
