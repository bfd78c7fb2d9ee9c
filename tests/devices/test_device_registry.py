import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from gnnperf.devices import Device, DeviceKind, get_device, list_devices
from gnnperf.devices.registry import _keys
from gnnperf.errors import DeviceError

DEVICES = list_devices()


@pytest.mark.parametrize(
    "name",
    [
        "1080ti",
        "1080 Ti",
        "GTX 1080 Ti",
        "gtx-1080-ti",
        "gtx_1080_ti",
        "GeForce GTX 1080 Ti",
        "NVIDIA GeForce GTX 1080Ti",
    ],
)
def test_spellings_of_the_1080_ti(name):
    device = get_device(name)
    assert device.slug == "1080ti"
    assert (device.sm_count, device.cores, device.clock_mhz, device.memory_gb) == (28, 3584, 1582, 11)
    assert device.peak_fp32_tflops == pytest.approx(11.34)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("GeForce GTX TITAN X", "titan-x-maxwell"),
        ("gtx titan x", "titan-x-maxwell"),
        ("Titan X (Pascal)", "titan-x-pascal"),
        ("titanx", "titan-x-pascal"),
        ("TITAN Xp", "titan-xp"),
        ("titan_rtx", "titan-rtx"),
        ("Tesla V100-PCIE-32GB", "v100-pcie-32gb"),
        ("v100", "v100-sxm2"),
        ("AMD_Instinct_MI250", "mi250"),
        ("gold_6226", "xeon-gold-6226"),
        ("i9_10940x", "i9-10940x"),
        ("raspi4", "raspberry-pi-4"),
    ],
)
def test_names_that_sources_use(name, slug):
    assert get_device(name).slug == slug


def test_every_slug_name_and_alias_leads_to_its_own_device():
    for device in DEVICES:
        for name in (device.slug, device.name, *device.aliases):
            assert get_device(name) is device, name
        assert get_device(device) is device


def test_no_two_devices_share_a_name():
    spelled = Counter(
        key for device in DEVICES for key in {_keys(name)[0] for name in (device.slug, device.name, *device.aliases)}
    )
    assert [key for key, count in spelled.items() if count > 1] == []


@pytest.mark.parametrize(
    ("wrong", "right"), [("1080tii", "1080ti"), ("GTX 1080 Tj", "1080ti"), ("titan rtxx", "titan-rtx")]
)
def test_a_near_miss_suggests_the_right_name(wrong, right):
    with pytest.raises(DeviceError, match=f"unknown device '{wrong}': did you mean '{right}'\\? `gnnperf devices`"):
        get_device(wrong)


@pytest.mark.parametrize("name", ["", "   ", "zzzzzzzz", "…", "☃" * 1000])
def test_a_name_far_from_all_is_refused_without_a_guess(name):
    with pytest.raises(DeviceError, match="lists all") as caught:
        get_device(name)
    assert "did you mean" not in str(caught.value)


def test_a_known_name_goes_before_a_file_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "name: Mine\ncores: 100\nclock_mhz: 1000\nbandwidth_gb_s: 100\nmemory_gb: 8\n"
    Path("v100").write_text(text)
    Path("mine").write_text(text)
    assert get_device("v100").slug == "v100-sxm2"
    assert get_device(Path("v100")).name == "Mine"
    assert get_device("mine").name == "Mine"


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.slug)
def test_figures_are_consistent(device: Device):
    assert device.peak_fp32_tflops == pytest.approx(2e-6 * device.cores * device.clock_mhz, rel=0.03)
    assert device.cores >= device.sm_count
    assert device.base_clock_mhz is None or device.base_clock_mhz <= device.clock_mhz
    assert device.source
    assert 2010 <= device.year <= 2030
    assert device.slug == device.slug.lower() and " " not in device.slug
    if device.kind == DeviceKind.GPU:
        assert device.cores % device.sm_count == 0
        assert device.bandwidth_gb_s and device.memory_gb and device.l2_mb and device.pcie_gb_s
        assert device.peak_fp64_tflops <= device.peak_fp32_tflops
    if device.vendor == "NVIDIA":
        major, minor = map(int, device.compute_capability.split("."))
        assert (device.tensor_fp16_tflops > 0) == ((major, minor) >= (7, 0))
        if device.tensor_fp16_tflops:
            per_clock_and_sm = device.tensor_fp16_tflops * 1e6 / (device.clock_mhz * device.sm_count)
            assert min(abs(per_clock_and_sm / power - 1) for power in (512, 1024, 2048, 4096)) < 0.10
        cores_per_sm = {3: 192, 5: 128, 6: 128, 7: 64, 8: 128, 9: 128, 12: 128}[major]
        assert device.cores // device.sm_count == (64 if (major, minor) in ((6, 0), (8, 0)) else cores_per_sm)


def test_specifications_published_elsewhere_agree(shared):
    # Two of NeuSight's files are off: P4 has 20 SMs of 128 cores, L4 has 58 SMs; the clock of P100 is not its boost.
    for file in sorted((shared / "data/neusight/device_configs").glob("*.json")):
        if file.stem.endswith("_TP"):  # two devices together
            continue
        theirs, ours = json.loads(file.read_text()), get_device(file.stem)
        assert ours.bandwidth_gb_s == pytest.approx(theirs["Mem_Bw"], rel=0.03), file.stem
        assert ours.memory_gb == pytest.approx(theirs["Dev_Mem"], rel=0.07), file.stem
        assert ours.l2_mb == pytest.approx(theirs["L2Cache"], rel=0.03) or ours.slug == "mi250" or ours.slug == "mi210"
        peak = theirs.get("SingleFLOPs") or theirs["SingleFLOPsVEC"]
        assert ours.peak_fp32_tflops * 1000 == pytest.approx(peak, rel=0.04), file.stem
        if ours.slug not in ("p4", "l4"):
            assert ours.sm_count == theirs["Num_Sm"], file.stem


def test_devices_of_the_measurements_are_known(shared):
    modelled = {"eyeriss", "fpga"}
    for path in (shared / "data/help").glob("*/latency/*.pt"):
        name = path.stem
        head, _, tail = name.rpartition("_")
        if tail in ("1", "32", "64", "256") and head != "essential_ph":
            name = head
        if name not in modelled:
            get_device(name)


def test_looking_up_a_name_loads_nothing_heavy():
    code = (
        "import sys; from gnnperf.devices import get_device; get_device('1080ti'); "
        "print(sorted({'torch', 'pandas', 'pydantic', 'yaml', 'onnx', 'numpy'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
