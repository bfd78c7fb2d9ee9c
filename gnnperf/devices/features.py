"""A device as numbers, for the network and the roofline: raw quantities in SI units, every gap filled."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gnnperf.conditions import Precision
from gnnperf.devices.device import Device, DeviceKind

DEVICE_FIELDS: tuple[str, ...] = (
    "peak_flops",  # at the precision, without tensor cores
    "tensor_flops",  # of matrix products at the precision, on tensor cores where there are any
    "peak_fp32_flops",
    "bandwidth_bytes_s",
    "sm_count",
    "cores",
    "clock_hz",
    "l2_bytes",
    "memory_bytes",
    "pcie_bytes_s",
    "is_cpu",
)

_PCIE_3_X16 = 15.75e9

# Typical of the kind, from data/devices.csv: memory bytes/s for each FP32 FLOP/s, last-level cache bytes for each SM or
# core, memory bytes.
_TYPICAL = {
    DeviceKind.GPU: (0.045, 100 * 2**10, 24e9),
    DeviceKind.ACCELERATOR: (0.045, 100 * 2**10, 24e9),
    DeviceKind.CPU: (0.06, 1.6 * 2**20, 64e9),
    DeviceKind.PHONE: (0.4, 2**19, 4e9),
}


@lru_cache(maxsize=256)
def device_features(device: Device, precision: Precision = Precision.FP32) -> np.ndarray:
    """``[len(DEVICE_FIELDS)]`` float64; positive and finite, but for ``is_cpu``, which is 0 or 1. Read-only.

    What is not published falls back to what the hardware does without it, or to a typical figure:

    - FP16: at least the FP32 peak, as libraries compute in FP32 where FP16 arithmetic is absent or slow (1/64 on most
      Pascal GPUs). FP64: half of the FP32 peak on CPUs, 1/32 elsewhere.
    - Tensor cores: ``peak_flops`` without them. At FP32, half of their FP16 rate from compute capability 8.0 on
      (TF32, which PyTorch uses for convolutions unless told otherwise); at FP64 they are not counted.
    - Bandwidth, last-level cache and memory: what is typical of the kind.
    - PCIe: 3.0 x16; on CPUs and phones, whose input is in place already, the memory bandwidth.
    """
    peak_fp32 = device.peak_fp32_tflops * 1e12
    peak = _peak_flops(device, precision)
    bytes_per_flop, cache_per_sm, memory = _TYPICAL[device.kind]
    bandwidth = device.bandwidth_gb_s * 1e9 if device.bandwidth_gb_s else bytes_per_flop * peak_fp32
    on_host = device.kind in (DeviceKind.CPU, DeviceKind.PHONE)
    pcie = bandwidth if on_host else _PCIE_3_X16
    features = (
        peak,
        max(peak, _tensor_flops(device, precision)),
        peak_fp32,
        bandwidth,
        device.sm_count,
        device.cores,
        device.clock_mhz * 1e6,
        device.l2_mb * 2**20 if device.l2_mb else cache_per_sm * device.sm_count,
        device.memory_gb * 1e9 if device.memory_gb else memory,
        device.pcie_gb_s * 1e9 if device.pcie_gb_s else pcie,
        on_host,
    )
    values = np.array(features, np.float64)
    values.flags.writeable = False  # all who ask get the same array
    return values


def _peak_flops(device: Device, precision: Precision) -> float:
    fp32 = device.peak_fp32_tflops
    if precision == Precision.FP16:
        return max(fp32, device.peak_fp16_tflops or 0) * 1e12
    if precision == Precision.FP64:
        ratio = 1 / 2 if device.kind == DeviceKind.CPU else 1 / 32
        return (device.peak_fp64_tflops or fp32 * ratio) * 1e12
    return fp32 * 1e12


def _tensor_flops(device: Device, precision: Precision) -> float:
    """0 where tensor cores do not serve the precision."""
    if precision == Precision.FP16:
        return device.tensor_fp16_tflops * 1e12
    major = device.compute_capability.split(".")[0]
    if precision == Precision.FP32 and major.isdigit() and int(major) >= 8:
        return device.tensor_fp16_tflops / 2 * 1e12
    return 0.0
