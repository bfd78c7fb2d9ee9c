"""What a measurement was taken on: processor, GPU, clocks, versions. Kept beside the table, once a machine."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from gnnperf.errors import DataError
from gnnperf.files import write_whole

_PACKAGES = ("gnnperf", "onnxruntime", "onnxruntime-gpu", "torch", "numpy", "onnx")
_CPU_FOLDER = Path("/sys/devices/system/cpu/cpu0/cpufreq")
_KEY_DIGITS = 8


@cache
def machine_record() -> dict:
    """Everything that can be read without privileges; what cannot is left out."""
    frequency = psutil.cpu_freq()
    record = {
        "processor": processor_name(),
        "cores": psutil.cpu_count(logical=False),
        "threads": psutil.cpu_count(),
        "usable_threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "clock_mhz": frequency.current if frequency else None,
        "most_clock_mhz": frequency.max or None if frequency else None,
        "governor": _text(_CPU_FOLDER / "scaling_governor"),
        "boost": _text(_CPU_FOLDER.parent.parent / "cpufreq/boost"),
        "virtual": "hypervisor" in _flags(),
        "vector_extensions": sorted(flag for flag in _flags() if flag.startswith(("avx", "amx", "asimd", "sve"))),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "gpus": gpu_records(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
    }
    return {name: value for name, value in record.items() if value not in (None, "", [])}


def machine_key(record: dict) -> str:
    """Eight hexadecimal digits that name a machine in a given state."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:_KEY_DIGITS]


def remember_machine(table: Path) -> str:
    """Write this machine into the file beside a table, ``mine.csv`` -> ``mine.machines.json``; returns its key.

    Raises:
        DataError: the file is damaged or cannot be written.
    """
    path = table.with_name(f"{table.stem}.machines.json")
    try:
        known = json.loads(path.read_text()) if path.exists() else {}
        record = machine_record()
        key = machine_key(record)
        if key not in known:
            write_whole(path, json.dumps({**known, key: record}, indent=2).encode())
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path} is damaged or cannot be written ({error}): remove it or fix it") from None
    return key


def processor_name() -> str:
    """As the processor calls itself."""
    for line in _lines(Path("/proc/cpuinfo")):
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model"):
            return value.strip()
    return platform.processor() or platform.machine()


def gpu_records() -> list[dict]:
    """Name, driver, memory and clock limits of NVIDIA's GPUs, where their management library is installed."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no such package, library or driver
        return []
    records = []
    for index in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        records.append({
            "name": _decoded(pynvml.nvmlDeviceGetName(handle)),
            "driver": _decoded(pynvml.nvmlSystemGetDriverVersion()),
            "memory_gb": round(pynvml.nvmlDeviceGetMemoryInfo(handle).total / 1e9, 1),
            "most_clock_mhz": pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM),
        })  # fmt: skip
    return records


def _decoded(text: str | bytes) -> str:
    return text.decode() if isinstance(text, bytes) else text


@cache
def _flags() -> frozenset[str]:
    for line in _lines(Path("/proc/cpuinfo")):
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:  # another system than Linux
        return []


def _text(path: Path) -> str:
    return " ".join(_lines(path))
