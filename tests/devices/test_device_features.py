from dataclasses import replace

import numpy as np
import pytest

from gnnperf.conditions import Precision
from gnnperf.devices import DeviceKind, get_device, list_devices
from gnnperf.devices.features import DEVICE_FIELDS, device_features


def named(device, precision=Precision.FP32):
    return dict(zip(DEVICE_FIELDS, device_features(device, precision), strict=True))


BARE = replace(
    get_device("1080ti"),
    peak_fp16_tflops=None,
    peak_fp64_tflops=None,
    tensor_fp16_tflops=0.0,
    bandwidth_gb_s=None,
    l2_mb=None,
    memory_gb=None,
    pcie_gb_s=None,
    compute_capability="",
)


@pytest.mark.parametrize("precision", Precision)
@pytest.mark.parametrize(
    "device",
    [*list_devices(), *(replace(BARE, kind=kind, slug=f"bare-{kind}") for kind in DeviceKind)],
    ids=lambda d: d.slug,
)
def test_features_are_positive_and_finite(device, precision):
    features = device_features(device, precision)
    assert features.dtype == np.float64 and features.shape == (len(DEVICE_FIELDS),)
    values = named(device, precision)
    assert values.pop("is_cpu") == (device.kind in ("cpu", "phone"))
    assert all(np.isfinite(value) and value > 0 for value in values.values()), values
    assert values["tensor_flops"] >= values["peak_flops"]


def test_units_of_the_1080_ti():
    values = named(get_device("1080ti"))
    assert values["peak_flops"] == values["tensor_flops"] == pytest.approx(11.34e12)
    assert values["bandwidth_bytes_s"] == pytest.approx(484.4e9)
    assert values["clock_hz"] == pytest.approx(1.582e9)
    assert values["l2_bytes"] == 2816 * 1024
    assert values["memory_bytes"] == pytest.approx(11e9)
    assert values["pcie_bytes_s"] == pytest.approx(15.75e9)


def test_precisions():
    pascal, volta, ampere = get_device("1080ti"), get_device("v100"), get_device("a100")
    assert named(pascal, Precision.FP16)["peak_flops"] == pytest.approx(11.34e12)  # FP32 arithmetic, not 1/64 of it
    assert named(pascal, Precision.FP64)["peak_flops"] == pytest.approx(0.3544e12)
    assert named(volta, Precision.FP16)["tensor_flops"] == pytest.approx(125e12)
    assert named(volta)["tensor_flops"] == named(volta)["peak_flops"]  # no TF32 before Ampere
    assert named(ampere)["tensor_flops"] == pytest.approx(156e12)
    assert named(ampere, Precision.FP64)["tensor_flops"] == named(ampere, Precision.FP64)["peak_flops"]


def test_a_cpu_reads_its_input_at_memory_bandwidth():
    values = named(get_device("i7-7700k"))
    assert values["pcie_bytes_s"] == values["bandwidth_bytes_s"] == pytest.approx(38.4e9)
