"""What a device is: the published figures that a latency depends on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gnnperf.devices.correction import Correction


class DeviceKind(StrEnum):
    """What sort of machine it is."""

    GPU = "gpu"
    CPU = "cpu"
    PHONE = "phone"  # a phone or single-board computer, run on its CPU cores
    ACCELERATOR = "accelerator"


@dataclass(frozen=True, slots=True)
class Device:
    """One device; ``None`` (``""`` for text) where no figure is published.

    ``sm_count`` counts what runs independently: streaming multiprocessors, compute units, CPU cores. ``cores`` counts
    FP32 multiply-accumulates a clock: CUDA cores, stream processors, SIMD lanes of all CPU cores' FMA units. So the
    FP32 peak is ``2 * cores * clock_mhz`` for every kind. It is an upper bound: few devices hold their boost clock.
    """

    slug: str  # short lower-case name, the key in measurement tables
    name: str  # as the vendor spells it
    vendor: str
    kind: DeviceKind
    architecture: str
    compute_capability: str  # NVIDIA only, "6.1"
    sm_count: int
    cores: int
    clock_mhz: float  # boost (maximum turbo of a CPU)
    base_clock_mhz: float | None
    peak_fp32_tflops: float
    peak_fp16_tflops: float | None  # without tensor cores
    peak_fp64_tflops: float | None  # without tensor cores
    tensor_fp16_tflops: float  # dense FP16 with FP32 accumulation on tensor or matrix cores, 0 without them
    bandwidth_gb_s: float | None
    l2_mb: float | None  # L2 of a GPU, last-level cache of a CPU
    memory_gb: float | None  # None: whatever the machine has, as for most CPUs
    pcie_gb_s: float | None  # one way, theoretical; None where data is not copied to the device
    year: int | None
    aliases: tuple[str, ...] = ()
    source: str = ""
    base: str = ""  # of a user's device: slug of the registered device that its description starts from
    derived: tuple[str, ...] = ()  # of a user's device: which fields were filled in, and how
    correction: Correction | None = None  # of a user's device: what measurements on it said, see `gnnperf adapt`
