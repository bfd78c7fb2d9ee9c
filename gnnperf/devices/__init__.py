"""Devices: what they are, which are known, and what their figures alone say about a latency."""

from gnnperf.devices.device import Device, DeviceKind
from gnnperf.devices.registry import get_device, list_devices

__all__ = ["Device", "DeviceKind", "get_device", "list_devices"]
