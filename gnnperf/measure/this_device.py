"""Which of the known devices this machine is."""

from __future__ import annotations

from gnnperf.devices import get_device, list_devices
from gnnperf.devices.device import DeviceKind
from gnnperf.errors import DeviceError
from gnnperf.measure.machine import gpu_records, processor_name


def recognised_device(on_gpu: bool) -> str:
    """Slug of the first GPU, or of the processor, in ``gnnperf devices``; "" where it is none of them."""
    if on_gpu:
        names = [record["name"] for record in gpu_records()]
        try:
            return get_device(names[0]).slug if names else ""
        except DeviceError:
            return ""
    processor = _plain(processor_name())
    for device in list_devices():
        if device.kind == DeviceKind.CPU and _plain(device.name) in processor:
            return device.slug
    return ""


def _plain(name: str) -> str:
    """Without trademarks and punctuation: ``Intel(R) Xeon(R) Gold 6226 CPU @ 2.70GHz`` -> ``intel xeon gold 6226``."""
    for mark in ("(r)", "(tm)", " cpu", "®", "™"):
        name = name.lower().replace(mark, "")
    return " ".join(name.split())
