"""Intervals: hand values, and that whatever is less like the measurements is never given the narrower one."""

import numpy as np
import pytest

from gnnperf.domain import UNMEASURED
from gnnperf.intervals import PHASES, SCALE_TERMS, Intervals, scale_terms

COEFFICIENTS = dict.fromkeys(SCALE_TERMS, 0.1) | {"distance": 0.05}
INTERVALS = Intervals(COEFFICIENTS, {"inference": 2.0, "training": 1.0})


def terms(distance=0.0, launches=0.0, **unmeasured):
    respects = [unmeasured.get(name, 0.0) for name in UNMEASURED]
    return scale_terms(np.array([distance]), np.array([launches]), np.array([respects]))


def test_by_hand():
    low, high = INTERVALS.bounds(np.array([10.0]), terms(distance=2.0, device=1.0), ["inference"])
    factor = np.exp(2.0 * (0.1 + 2 * 0.05 + 0.1))
    assert (low[0], high[0]) == (pytest.approx(10 / factor), pytest.approx(10 * factor))
    low, high = INTERVALS.bounds(np.array([10.0]), terms(distance=2.0, device=1.0), ["training"])
    assert high[0] == pytest.approx(10 * np.sqrt(factor))


def test_farther_is_wider():
    distances = np.linspace(0, 5, 20)
    low, high = INTERVALS.bounds(
        np.full(20, 3.0), scale_terms(distances, np.zeros(20), np.zeros((20, len(UNMEASURED)))), ["inference"] * 20
    )
    assert (np.diff(low) < 0).all() and (np.diff(high) > 0).all() and (low > 0).all()


@pytest.mark.parametrize("name", ["launches", *UNMEASURED])
def test_whatever_is_unmeasured_widens(name):
    plain, wide = (INTERVALS.bounds(np.array([1.0]), t, ["training"])[1][0] for t in (terms(), terms(**{name: 1.0})))
    assert wide > plain


def test_an_interval_stays_finite():
    low, high = INTERVALS.bounds(np.array([1.0]), terms(distance=1e9), ["inference"])
    assert 0 < low[0] < 1 < high[0] < 100


def test_round_trip():
    assert Intervals.from_dict(INTERVALS.to_dict()) == INTERVALS
    assert Intervals({}, {}, {"level": 0.9}).to_dict()["level"] == 0.9


@pytest.mark.parametrize("bad", [-0.1, float("nan"), float("inf"), "much", None])
@pytest.mark.parametrize("part", ["coefficients", "quantile"])
def test_numbers_that_cannot_be_are_refused(part, bad):
    values = INTERVALS.to_dict()
    name = SCALE_TERMS[0] if part == "coefficients" else PHASES[0]
    with pytest.raises((ValueError, TypeError)):
        Intervals.from_dict(values | {part: values[part] | {name: bad}})
    with pytest.raises(KeyError):
        Intervals.from_dict(values | {part: {}})
