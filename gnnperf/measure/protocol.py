"""How often to run before a time can be believed.

After Zhu et al. 2018 (TBD, "Benchmarking and Analyzing Deep Neural Network Training", IISWC): warm up until the time no
longer drifts, then sample what is stable. How many samples that takes follows Hoefler and Belli 2015 ("Scientific
Benchmarking of Parallel Computing Systems", SC): medians, since times are skewed, with the confidence interval that
their order statistics give; sampling stops once that interval is narrow.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import numpy as np

_WINDOW = 3  # runs whose medians are compared to tell whether a time still drifts
_FEWEST_WARM_UPS = 2
_NORMAL_QUARTILES = 1.349  # interquartile range of a normal distribution, in standard deviations
_CLOCK_MS = 0.02  # what reading two clocks costs, so that it is not taken for waiting


class Clock(Protocol):
    """Where times come from; tests bring their own."""

    def wall_s(self) -> float:
        """Seconds that passed."""

    def cpu_s(self) -> float:
        """Seconds for which this process had a processor, over all of its threads."""


class SystemClock:
    """The clocks of this machine."""

    wall_s = staticmethod(time.perf_counter)
    cpu_s = staticmethod(time.process_time)


@dataclass(frozen=True, slots=True)
class Settings:
    """When to stop.

    Attributes:
        confidence: of the interval around the median.
        precision: half the width that the interval may have, as a share of the median.
        fewest: repeats that are always made.
        most: repeats after which to stop all the same.
        most_s: seconds of repeats after which to stop all the same, once there are ``fewest``.
        most_warm_up_s: seconds after which warming up ends, even if times still drift.
        drift: change between two windows of warm-up runs below which a time is stable.
        waiting: a repeat waited for the processor when it took longer than this many times its CPU time; such repeats
            are dropped, unless too few others are left. None where CPU time says nothing (GPUs, several threads).
    """

    confidence: float = 0.95
    precision: float = 0.02
    fewest: int = 10
    most: int = 1000
    most_s: float = 5.0
    most_warm_up_s: float = 2.0
    drift: float = 0.05
    waiting: float | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """What the repeats gave.

    Attributes:
        median_ms: of a run.
        spread_ms: standard deviation, from the interquartile range.
        interval_ms: confidence interval of the median.
        parts_ms: medians of the parts of a run, in the order in which it gave them.
        repeats: how many were kept.
        dropped: how many were not, because they waited for the processor.
        waited: share of all repeats that did; of those that were kept, none did unless ``dropped`` is 0.
        warm_ups: how many runs went before.
        stable: whether times had stopped drifting when sampling began, and the interval is as narrow as asked.
    """

    median_ms: float
    spread_ms: float
    interval_ms: tuple[float, float]
    parts_ms: tuple[float, ...]
    repeats: int
    dropped: int
    waited: float
    warm_ups: int
    stable: bool


def time_runs(
    run: Callable[[], Sequence[float]], settings: Settings = Settings(), clock: Clock = SystemClock()
) -> Timing:
    """Run until the median is known well enough.

    Args:
        run: one whole run, finished when it returns; gives the times of its parts in milliseconds, or nothing.
        settings: when to stop.
        clock: where times come from.
    """
    warm_ups, steady = _warm_up(run, settings, clock)
    kept: list[tuple[float, Sequence[float]]] = []
    waited: list[tuple[float, Sequence[float]]] = []
    narrow = False
    begin = clock.wall_s()
    while len(kept) + len(waited) < settings.most:
        start, start_cpu = clock.wall_s(), clock.cpu_s()
        parts_ms = run()
        cpu_ms, wall_ms = 1e3 * (clock.cpu_s() - start_cpu), 1e3 * (clock.wall_s() - start)
        if settings.waiting is not None and wall_ms > settings.waiting * cpu_ms + _CLOCK_MS:
            waited.append((wall_ms, parts_ms))
        else:
            kept.append((wall_ms, parts_ms))
            narrow = _is_narrow(kept, settings)
        out_of_time = clock.wall_s() - begin >= settings.most_s
        enough = len(kept) >= settings.fewest
        if (enough and (narrow or out_of_time)) or (out_of_time and len(waited) >= settings.fewest):
            break
    share = len(waited) / (len(kept) + len(waited))
    if len(kept) < settings.fewest and waited:
        kept, waited, narrow = kept + waited, [], False
    samples = np.array([wall_ms for wall_ms, _ in kept])
    quartiles = np.percentile(samples, [25, 75])
    return Timing(
        median_ms=float(np.median(samples)),
        spread_ms=float(quartiles[1] - quartiles[0]) / _NORMAL_QUARTILES,
        interval_ms=median_interval(samples, settings.confidence),
        parts_ms=tuple(np.median(np.array([parts_ms for _, parts_ms in kept]), axis=0).tolist()),
        repeats=len(samples),
        dropped=len(waited),
        waited=share,
        warm_ups=warm_ups,
        stable=steady and narrow,
    )


def median_interval(samples: np.ndarray, confidence: float) -> tuple[float, float]:
    """Confidence interval of the median by order statistics; the whole range where there are too few samples.

    Args:
        samples: at least one.
        confidence: chance that the interval holds the median, between 0 and 1.

    Source: Le Boudec 2010, "Performance Evaluation of Computer and Communication Systems", 2.2.2.
    """
    ordered, count = np.sort(samples), len(samples)
    half = NormalDist().inv_cdf(0.5 + confidence / 2) * math.sqrt(count) / 2
    low = max(math.floor(count / 2 - half), 1)
    high = min(math.ceil(count / 2 + half + 1), count)
    return float(ordered[low - 1]), float(ordered[high - 1])


def _is_narrow(kept: list[tuple[float, Sequence[float]]], settings: Settings) -> bool:
    count = len(kept)
    # Sorting after every run would cost as much as a small network does.
    if count < settings.fewest or (count > 50 and count % 10):
        return False
    samples = np.array([wall_ms for wall_ms, _ in kept])
    low, high = median_interval(samples, settings.confidence)
    return high - low <= 2 * settings.precision * float(np.median(samples))


def _warm_up(run: Callable[[], Sequence[float]], settings: Settings, clock: Clock) -> tuple[int, bool]:
    """How many runs it took, and whether the time was stable at the end."""
    times: list[float] = []
    begin = clock.wall_s()
    while True:
        start = clock.wall_s()
        run()
        now = clock.wall_s()
        times.append(now - start)
        if len(times) >= 2 * _WINDOW:
            before = float(np.median(times[-2 * _WINDOW : -_WINDOW]))
            if abs(float(np.median(times[-_WINDOW:])) - before) <= settings.drift * before:
                return len(times), True
        if now - begin >= settings.most_warm_up_s and len(times) >= _FEWEST_WARM_UPS:
            return len(times), False
