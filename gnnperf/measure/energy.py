"""Energy counters, where the machine has some that may be read: RAPL of the processor, NVML of an NVIDIA GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

_RAPL = Path("/sys/class/powercap")


class EnergyMeter(Protocol):
    """Counts from :meth:`start`."""

    def start(self) -> None:
        """Begin."""

    def stop_mj(self) -> float:
        """Millijoules since :meth:`start`."""


class RaplMeter:
    """Processor packages of Linux machines; needs read access to ``/sys/class/powercap``, which is root's by default.

    Args:
        root: the folder of the counters.

    Raises:
        OSError: there are no counters, or they may not be read.
    """

    def __init__(self, root: Path = _RAPL) -> None:
        # intel-rapl:0 is a package, intel-rapl:0:1 a part of one that the package counts too.
        self._packages = [path for path in sorted(root.glob("intel-rapl:*")) if path.name.count(":") == 1]
        if not self._packages:
            raise FileNotFoundError(root)
        self._wraps_uj = [int((path / "max_energy_range_uj").read_text()) for path in self._packages]
        self.start()

    def start(self) -> None:
        """Begin."""
        self._begin = self._read()

    def stop_mj(self) -> float:
        """Millijoules of all packages since :meth:`start`; a counter that wrapped round once is put right."""
        used = [now - then for now, then in zip(self._read(), self._begin, strict=True)]
        return sum(uj if uj >= 0 else uj + wrap for uj, wrap in zip(used, self._wraps_uj, strict=True)) / 1e3

    def _read(self) -> list[int]:
        return [int((path / "energy_uj").read_text()) for path in self._packages]


class NvmlMeter:
    """One NVIDIA GPU from Volta on.

    Raises:
        Exception: no management library, or a GPU without a counter.
    """

    def __init__(self, index: int = 0) -> None:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        self._read = lambda: float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle))
        self.start()

    def start(self) -> None:
        """Begin."""
        self._begin = self._read()

    def stop_mj(self) -> float:
        """Millijoules of the GPU since :meth:`start`."""
        return self._read() - self._begin


def energy_meter(on_gpu: bool) -> EnergyMeter | None:
    """A meter for what runs the network; None where the machine offers none."""
    try:
        return NvmlMeter() if on_gpu else RaplMeter()
    except Exception:  # each library and driver has errors of its own, and all of them mean "not here"
        return None
