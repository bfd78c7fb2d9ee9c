"""Was the machine quiet while something was timed? Said in the row, since nobody can tell from the time alone."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

_THROTTLE_COUNTS = "cpu[0-9]*/thermal_throttle/core_throttle_count"
_SLOWED_DOWN = 0x8 | 0x20 | 0x40  # NVML's bits for hardware and thermal slowdown
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
        self._throttled = _throttle_count()

    def stop(self) -> Quietness:
        """What the other processes did since :meth:`start`, stolen time of a virtual machine included, and heat."""
        return combined(self._others(), self._heat())

    def _others(self) -> Quietness:
        wall_s, all_s, own_s = (now - then for now, then in zip(self._counters(), self._begin, strict=True))
        # Both counts may be a tick short or long.
        others_s = max(0.0, all_s - own_s - 2 * _TICK_S)
        cores = others_s / max(wall_s, _TICK_S)
        if cores <= _BUSY_CORES:
            return Quietness(True)
        load = psutil.getloadavg()[0]
        return Quietness(False, f"other processes used {cores:.2f} of {psutil.cpu_count()} cores, load {load:.1f}")

    def _heat(self) -> Quietness:
        if _throttle_count() == self._throttled:
            return Quietness(True)
        return Quietness(False, "the processor grew too hot and slowed down")

    def _counters(self) -> tuple[float, float, float]:
        """Seconds that passed, that all processes had processors, and that this one and its children had them."""
        times, own = psutil.cpu_times(), self._process.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        # Time of guests is counted in user time already.
        busy = sum(times) - idle - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        own_s = own.user + own.system + getattr(own, "children_user", 0.0) + getattr(own, "children_system", 0.0)
        return time.perf_counter(), busy, own_s


def gpu_quietness() -> Quietness:
    """Whether the first NVIDIA GPU has other processes or slows down for heat.

    Quiet where its management library is not installed.
    """
    try:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        reasons = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    except Exception:  # no such package, library or driver
        return Quietness(True)
    others = [process for process in processes if process.pid != os.getpid()]
    return combined(
        Quietness(not others, f"{len(others)} other processes are on the GPU" if others else ""),
        Quietness(not reasons & _SLOWED_DOWN, "the GPU grew too hot and slowed down" if reasons & _SLOWED_DOWN else ""),
    )


def combined(*parts: Quietness) -> Quietness:
    """Quiet if all are; notes joined."""
    return Quietness(all(part.quiet for part in parts), "; ".join(part.note for part in parts if part.note))


def _throttle_count(root: Path = Path("/sys/devices/system/cpu")) -> int:
    """How often cores have slowed down for heat; 0 where nobody counts."""
    return sum(int(path.read_text()) for path in root.glob(_THROTTLE_COUNTS))
