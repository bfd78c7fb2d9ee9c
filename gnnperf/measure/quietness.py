"""Was the machine quiet while something was timed? Said in the row, since nobody can tell from the time alone."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import psutil

_BUSY_CORES = 0.1  # what other processes may use all together
_TICK_S = 0.01  # Linux counts processor time in hundredths of a second


@dataclass(frozen=True, slots=True)
class Quietness:
    """What else ran meanwhile.

    Attributes:
        quiet: whether it was little enough.
        note: what disturbed, in words; "" where nothing did.
    """

    quiet: bool
    note: str = ""


class QuietnessWatch:
    """Watches from :meth:`start` to :meth:`stop`; may be used again."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self.start()

    def start(self) -> None:
        """Begin to watch."""
        self._begin = self._counters()

    def stop(self) -> Quietness:
        """What the other processes did since :meth:`start`, stolen time of a virtual machine included."""
        wall_s, all_s, own_s = (now - then for now, then in zip(self._counters(), self._begin, strict=True))
        # Both counts may be a tick short or long.
        others_s = max(0.0, all_s - own_s - 2 * _TICK_S)
        cores = others_s / max(wall_s, _TICK_S)
        if cores <= _BUSY_CORES:
            return Quietness(True)
        load = psutil.getloadavg()[0]
        return Quietness(False, f"other processes used {cores:.2f} of {psutil.cpu_count()} cores, load {load:.1f}")

    def _counters(self) -> tuple[float, float, float]:
        """Seconds that passed, that all processes had processors, and that this one and its children had them."""
        times, own = psutil.cpu_times(), self._process.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        # Time of guests is counted in user time already.
        busy = sum(times) - idle - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        own_s = own.user + own.system + getattr(own, "children_user", 0.0) + getattr(own, "children_system", 0.0)
        return time.perf_counter(), busy, own_s


def gpu_neighbours() -> Quietness:
    """Whether other processes compute on the first NVIDIA GPU; quiet where its management library is not installed."""
    try:
        import pynvml

        pynvml.nvmlInit()
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByIndex(0))
    except Exception:  # no such package, library or driver
        return Quietness(True)
    others = [process for process in processes if process.pid != os.getpid()]
    if not others:
        return Quietness(True)
    return Quietness(False, f"{len(others)} other processes are on the GPU")


def combined(*parts: Quietness) -> Quietness:
    """Quiet if all are; notes joined."""
    return Quietness(all(part.quiet for part in parts), "; ".join(part.note for part in parts if part.note))
