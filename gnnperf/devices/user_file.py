"""A device that a user describes in a YAML file: checked field by field, completed where figures are missing."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from gnnperf.devices.correction import split_correction
from gnnperf.devices.device import Device, DeviceKind
from gnnperf.devices.flat_yaml import read_flat_yaml
from gnnperf.devices.registry import known_device, list_devices
from gnnperf.errors import DeviceError

# FP32 lanes of one SM by compute capability (NVIDIA CUDA programming guide); the longer key counts.
_CORES_PER_SM = {"3": 192, "5": 128, "6.0": 64, "6": 128, "7": 64, "8.0": 64, "8": 128, "9": 128, "10": 128, "12": 128}
_CORES_PER_UNKNOWN_SM = {DeviceKind.CPU: 16, DeviceKind.PHONE: 4}  # two 256-bit or one 128-bit FMA unit a core
_PEAK_TOLERANCE = 4.0  # between a given FP32 peak and 2 * cores * clock: dual issue is 2, a slip in the unit is 1000

TEMPLATE = """\
# A device for `gnnperf predict net.onnx --device {file}`. Figures are those of a data sheet.
name: My GPU                     # required
kind: gpu                        # gpu, cpu, phone or accelerator
# base: 1080ti                   # take every figure that is not given here from a device of `gnnperf devices`;
#                                # peaks follow a changed clock or number of cores

# Required, unless there is a base:
sm_count: 28                     # streaming multiprocessors, compute units or CPU cores; or give cores
cores: 3584                      # CUDA cores, stream processors or SIMD lanes (FP32 multiply-accumulates a clock)
clock_mhz: 1582                  # boost clock
bandwidth_gb_s: 484              # memory bandwidth
memory_gb: 11

# Optional, derived or estimated where absent:
# peak_fp32_tflops: 11.34        # 2 * cores * clock
# peak_fp16_tflops: 0.177        # without tensor cores
# peak_fp64_tflops: 0.354
# tensor_fp16_tflops: 0          # dense, FP32 accumulation; 0 without tensor cores
# l2_mb: 2.75                    # L2 of a GPU, last-level cache of a CPU
# pcie_gb_s: 15.75               # one way: PCIe 3.0 x16 15.75, 4.0 31.5, 5.0 63
# base_clock_mhz: 1481
# compute_capability: "6.1"      # NVIDIA
# architecture: Pascal
# vendor: NVIDIA
# year: 2017
"""


def _no_boolean(value: Any) -> Any:
    """YAML reads yes, no, on and off as booleans, and Python takes those for numbers."""
    if isinstance(value, bool):
        raise ValueError("is no number")
    return value


_Number = Annotated[float, BeforeValidator(_no_boolean)]
_Count = Annotated[int, BeforeValidator(_no_boolean)]


def _number(low: float, high: float, unit: str) -> Any:
    description = f"a number from {low:g} to {high:g} ({unit})"
    return Field(default=None, ge=low, le=high, allow_inf_nan=False, description=description)


def _count(low: int, high: int) -> Any:
    return Field(default=None, ge=low, le=high, description=f"a whole number from {low} to {high}")


def _text() -> Any:
    return Field(default=None, max_length=100, description="a text of up to 100 characters")


class DeviceFile(BaseModel):
    """The keys of a device file. Bounds refuse slips in the unit (GHz for MHz, GFLOP/s for TFLOP/s)."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    name: str = Field(pattern=r"\w", max_length=100, description="a text of 1 to 100 characters")
    base: str | None = Field(default=None, description="a device of `gnnperf devices`")
    kind: DeviceKind | None = Field(default=None, description=f"one of {', '.join(DeviceKind)}")
    vendor: str | None = _text()
    architecture: str | None = _text()
    compute_capability: str | None = Field(default=None, pattern=r"^\d{1,2}\.\d$", description='such as "6.1"')
    sm_count: _Count | None = _count(1, 100_000)
    cores: _Count | None = _count(1, 10_000_000)
    clock_mhz: _Number | None = _number(50, 10_000, "MHz")
    base_clock_mhz: _Number | None = _number(50, 10_000, "MHz")
    peak_fp32_tflops: _Number | None = _number(1e-3, 1e4, "TFLOP/s")
    peak_fp16_tflops: _Number | None = _number(1e-3, 1e4, "TFLOP/s")
    peak_fp64_tflops: _Number | None = _number(1e-4, 1e4, "TFLOP/s")
    tensor_fp16_tflops: _Number | None = _number(0, 1e5, "TFLOP/s, 0 without tensor cores")
    bandwidth_gb_s: _Number | None = _number(0.5, 1e5, "GB/s")
    l2_mb: _Number | None = _number(0.01, 1e4, "MB")
    memory_gb: _Number | None = _number(0.1, 1e5, "GB")
    pcie_gb_s: _Number | None = _number(0.1, 2000, "GB/s")
    year: _Count | None = _count(1970, 2100)


def read_device_file(path: Path) -> Device:
    """Read, check and complete a device file; :data:`TEMPLATE` shows its keys.

    Required are ``name`` and, without a ``base``, ``sm_count`` or ``cores``, ``clock_mhz``, ``bandwidth_gb_s`` and
    ``memory_gb``. What is filled in is said in :attr:`Device.derived`. A file of ``gnnperf adapt`` has scales beside
    (:mod:`gnnperf.devices.correction`).

    Raises:
        DeviceError: the file cannot be read, is no flat YAML mapping, or a value is missing, unknown or out of bounds.
    """
    values, correction = split_correction(read_flat_yaml(path), str(path))
    fields = _validate(values, path)
    base = None
    if fields.base is not None:
        try:
            base = known_device(fields.base)
        except DeviceError as error:
            raise DeviceError(f"{path}: base: {error}") from None
    else:
        _require(fields, path)
    device = _scaled(fields, base) if base else _completed(fields)
    _check_consistency(device, path)
    slug = _slug(fields.name)
    if any(slug == known.slug for known in list_devices()):
        slug += "-described"  # a registered device is another, whose measurements say nothing of this one
    return replace(device, slug=slug, source=f"user file {path.name}", correction=correction)


def vary(base: Device, values: dict[str, float]) -> Device:
    """``base`` with some figures changed and all that depends on them in proportion, as in a file that names it.

    Raises:
        DeviceError: a value is out of bounds, or the figures do not fit each other.
    """
    words = ", ".join(f"{key} {value:g}" for key, value in values.items())
    where = f"{base.slug} with {words}"
    device = _scaled(_validate({"name": base.name, **values}, where), base)
    _check_consistency(device, where)
    # A device of a user may have a base itself, which is the one that was measured.
    return replace(device, name=f"{base.name} with {words}", slug=_slug(where), base=base.base or base.slug)


def _validate(values: dict[str, Any], path: Path | str) -> DeviceFile:
    try:
        return DeviceFile.model_validate({str(key): value for key, value in values.items()})
    except ValidationError as error:
        first = error.errors()[0]
    key = str(first["loc"][0])
    if first["type"] == "missing":
        raise DeviceError(f"{path}: {key} is missing")
    if key not in DeviceFile.model_fields:
        near = get_close_matches(key, DeviceFile.model_fields, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(DeviceFile.model_fields)}"
        raise DeviceError(f"{path}: unknown key {key!r}: {hint}")
    given = repr(first["input"])
    given = given if len(given) <= 60 else f"{given[:57]}..."
    raise DeviceError(f"{path}: {key} has to be {DeviceFile.model_fields[key].description}, not {given}")


def _require(fields: DeviceFile, path: Path) -> None:
    missing = [key for key in ("clock_mhz", "bandwidth_gb_s", "memory_gb") if getattr(fields, key) is None]
    if fields.sm_count is None and fields.cores is None:
        missing.insert(0, "sm_count or cores")
    if missing:
        raise DeviceError(f"{path}: missing {', '.join(missing)}; give them, or a base such as `base: 1080ti`")


def _completed(fields: DeviceFile) -> Device:
    """A device from its own figures."""
    kind = fields.kind or DeviceKind.GPU
    per_sm = _CORES_PER_UNKNOWN_SM.get(kind) or _cores_per_sm(fields.compute_capability)
    given, derived = _given(fields), []

    def derive(key: str, value: float, how: str) -> None:
        if key not in given:
            given[key] = value
            derived.append(f"{key} = {value:g}: {how}")

    derive("sm_count", max(1, round(given.get("cores", 0) / per_sm)), f"{per_sm} cores each")
    derive("cores", given["sm_count"] * per_sm, f"{per_sm} for each of sm_count")
    derive("peak_fp32_tflops", 2e-6 * given["cores"] * given["clock_mhz"], "2 * cores * clock_mhz")
    derive("tensor_fp16_tflops", 0.0, "none given")
    optional = dict.fromkeys(("base_clock_mhz", "peak_fp16_tflops", "peak_fp64_tflops", "l2_mb", "pcie_gb_s", "year"))
    texts = dict.fromkeys(("vendor", "architecture", "compute_capability"), "")
    return Device(**{**optional, **texts, **given, "slug": "", "kind": kind, "derived": tuple(derived)})


def _scaled(fields: DeviceFile, base: Device) -> Device:
    """The base with the given figures instead of its own; what depends on them follows in proportion."""
    given, derived = _given(fields), []

    def follow(key: str, factor: float, why: str) -> None:
        value = getattr(base, key)
        if key not in given and value and factor != 1:
            given[key] = max(1, round(value * factor)) if isinstance(value, int) else value * factor
            derived.append(f"{key} = {given[key]:.4g}: {base.slug}'s {value:.4g}, in proportion to {why}")

    follow("cores", given.get("sm_count", base.sm_count) / base.sm_count, "sm_count")
    follow("sm_count", given.get("cores", base.cores) / base.cores, "cores")
    clock = given.get("clock_mhz", base.clock_mhz) / base.clock_mhz
    follow("base_clock_mhz", clock, "clock_mhz")
    for key in ("peak_fp32_tflops", "peak_fp16_tflops", "peak_fp64_tflops"):
        follow(key, clock * given.get("cores", base.cores) / base.cores, "cores * clock_mhz")
    follow("tensor_fp16_tflops", clock * given.get("sm_count", base.sm_count) / base.sm_count, "sm_count * clock_mhz")
    derived.append(f"all that is not given: as {base.slug}")
    return replace(base, **given, aliases=(), base=base.slug, derived=tuple(derived))


def _given(fields: DeviceFile) -> dict[str, Any]:
    return fields.model_dump(exclude_none=True, exclude={"base"})


def _cores_per_sm(compute_capability: str | None) -> int:
    """FP32 lanes of one SM; 128, as most have, where the compute capability is not known."""
    capability = compute_capability or ""
    return _CORES_PER_SM.get(capability) or _CORES_PER_SM.get(capability.split(".")[0], 128)


def _check_consistency(device: Device, path: Path | str) -> None:
    if device.cores < device.sm_count:
        raise DeviceError(f"{path}: cores ({device.cores}) cannot be fewer than sm_count ({device.sm_count})")
    if device.base_clock_mhz is not None and device.base_clock_mhz > device.clock_mhz:
        raise DeviceError(
            f"{path}: base_clock_mhz ({device.base_clock_mhz:g}) cannot exceed clock_mhz, the boost clock "
            f"({device.clock_mhz:g})"
        )
    computed = 2e-6 * device.cores * device.clock_mhz
    if not 1 / _PEAK_TOLERANCE <= device.peak_fp32_tflops / computed <= _PEAK_TOLERANCE:
        raise DeviceError(
            f"{path}: peak_fp32_tflops ({device.peak_fp32_tflops:g}) does not fit 2 * cores * clock_mhz, which is "
            f"{computed:.3g} TFLOP/s: check the units (TFLOP/s, MHz) and cores"
        )


def _slug(name: str) -> str:
    return "-".join("".join(letter if letter.isalnum() else " " for letter in name.lower()).split())
