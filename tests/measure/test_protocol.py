"""Warm-up, stopping, medians and what waits for the processor, on a clock that the test turns."""

import numpy as np
import pytest

from gnnperf.measure.protocol import Settings, median_interval, time_runs


class FakeClock:
    """Time passes only while a run says so."""

    def __init__(self):
        self.wall, self.cpu = 0.0, 0.0

    def wall_s(self):
        return self.wall

    def cpu_s(self):
        return self.cpu


class FakeRun:
    """Each call takes the next of ``ms``, the last one from then on; ``waiting_ms`` without the processor."""

    def __init__(self, clock, ms, waiting_ms=(0.0,), parts=()):
        self.clock, self.ms, self.waiting_ms, self.parts, self.calls = clock, ms, waiting_ms, parts, 0

    def __call__(self):
        worked = self.ms[min(self.calls, len(self.ms) - 1)]
        waited = self.waiting_ms[self.calls % len(self.waiting_ms)]
        self.calls += 1
        self.clock.wall += 1e-3 * (worked + waited)
        self.clock.cpu += 1e-3 * worked
        return [share * worked for share in self.parts]


def timed(ms, settings=Settings(), **arguments):
    clock = FakeClock()
    return time_runs(FakeRun(clock, ms, **arguments), settings, clock)


def test_slow_first_runs_do_not_count():
    timing = timed([500.0, 80.0, 40.0, 20.0, 12.0, 11.0, 10.5, 10.2] + [10.0] * 1000)
    assert timing.median_ms == pytest.approx(10.0)
    assert timing.stable and timing.warm_ups >= 8


def test_warming_up_ends_when_a_time_never_settles():
    growing = [1.3**i for i in range(60)]
    timing = timed(growing, Settings(most_warm_up_s=0.5, most_s=0.5, fewest=3))
    assert not timing.stable
    assert timing.warm_ups < 25


def test_steady_times_stop_at_the_fewest_repeats():
    assert timed([10.0], Settings(fewest=10)).repeats == 10


def test_noisy_times_take_more_repeats_than_steady_ones_but_not_for_ever():
    noise = np.random.default_rng(0)
    noisy = (10 * np.exp(0.2 * noise.standard_normal(5000))).tolist()
    settings = Settings(precision=0.02, fewest=10, most=5000, most_s=1e9)
    timing = timed(noisy, settings)
    low, high = timing.interval_ms
    assert timing.repeats > 100
    assert high - low <= 2 * 0.02 * timing.median_ms
    assert timing.median_ms == pytest.approx(10, rel=0.03)
    assert timing.spread_ms == pytest.approx(2, rel=0.2)
    assert timed(noisy, Settings(precision=0.0001, most_s=0.5, fewest=10)).repeats <= 60


def test_repeats_that_waited_for_the_processor_are_dropped():
    timing = timed([10.0], Settings(waiting=1.05, fewest=12), waiting_ms=[0.0, 0.0, 7.0])
    assert timing.median_ms == pytest.approx(10.0)
    assert timing.dropped > 0 and timing.waited == pytest.approx(1 / 3, abs=0.1)


def test_where_every_repeat_waits_all_are_kept_and_said():
    timing = timed([10.0], Settings(waiting=1.05, fewest=5, most_s=0.2), waiting_ms=[30.0])
    assert timing.median_ms == pytest.approx(40.0)
    assert timing.waited == 1.0 and timing.dropped == 0 and not timing.stable


def test_parts_are_medians_in_their_order():
    timing = timed([10.0], parts=(0.5, 0.3, 0.2))
    assert timing.parts_ms == pytest.approx((5.0, 3.0, 2.0))


@pytest.mark.parametrize("count", [5, 20, 101])
def test_interval_of_the_median_holds_it_as_often_as_it_says(count):
    generator = np.random.default_rng(1)
    hits = 0
    for _ in range(2000):
        low, high = median_interval(generator.exponential(size=count), 0.9)
        hits += low <= np.log(2) <= high  # median of the distribution
    assert hits / 2000 >= 0.88
    if count > 10:  # with few samples the interval has to be wide
        assert hits / 2000 <= 0.97
