import os
import re

import pytest

from gnnperf.devices import get_device, list_devices
from gnnperf.devices.flat_yaml import MAX_FILE_BYTES
from gnnperf.devices.user_file import TEMPLATE, DeviceFile
from gnnperf.errors import DeviceError

GOOD = "name: X 9\nsm_count: 10\nclock_mhz: 1000\nbandwidth_gb_s: 100\nmemory_gb: 8\n"


@pytest.fixture
def read(tmp_path):
    def read(text: str | bytes):
        path = tmp_path / "mine.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return get_device(path)

    return read


def test_missing_figures_are_derived_and_said(read):
    device = read(GOOD)
    assert (device.slug, device.name, device.kind) == ("x-9", "X 9", "gpu")
    assert device.cores == 1280
    assert device.peak_fp32_tflops == pytest.approx(2.56)
    assert {note.split(" = ")[0] for note in device.derived} == {"cores", "peak_fp32_tflops", "tensor_fp16_tflops"}
    assert device.source == "user file mine.yaml"


def test_cores_of_an_sm_follow_the_compute_capability(read):
    assert read(GOOD + "compute_capability: 7.5\n").cores == 640
    assert read(GOOD + "compute_capability: 6.0\n").cores == 640
    assert read(GOOD + "compute_capability: 6.1\n").cores == 1280
    assert read(GOOD + "kind: cpu\n").cores == 160
    assert read(GOOD.replace("sm_count: 10", "cores: 2560")).sm_count == 20


def test_given_figures_stand(read):
    device = read(GOOD + "cores: 1000\npeak_fp32_tflops: 2.2\nl2_mb: 3\npcie_gb_s: 31.5\nyear: 2020\nvendor: V\n")
    assert (device.cores, device.peak_fp32_tflops, device.l2_mb, device.pcie_gb_s) == (1000, 2.2, 3, 31.5)
    assert (device.year, device.vendor) == (2020, "V")


def test_base_fills_the_gaps(read):
    base, device = get_device("1080ti"), read("name: Y\nbase: GTX 1080 Ti\nmemory_gb: 22\n")
    assert device.memory_gb == 22
    for field in ("cores", "clock_mhz", "peak_fp32_tflops", "peak_fp16_tflops", "bandwidth_gb_s", "l2_mb", "pcie_gb_s"):
        assert getattr(device, field) == getattr(base, field), field
    assert (device.slug, device.aliases) == ("y", ())


def test_peaks_follow_a_changed_clock_and_size(read):
    base = get_device("2080ti")
    device = read("name: Y\nbase: 2080ti\nsm_count: 34\nclock_mhz: 772.5\n")
    assert device.cores == 2176
    for field in ("peak_fp32_tflops", "peak_fp16_tflops", "peak_fp64_tflops", "tensor_fp16_tflops"):
        assert getattr(device, field) == pytest.approx(getattr(base, field) / 4), field
    assert device.base_clock_mhz == pytest.approx(675)
    assert any("tensor_fp16_tflops" in note and "2080ti" in note for note in device.derived)
    assert read("name: Y\nbase: 2080ti\ncores: 2176\n").sm_count == 34
    assert read("name: Y\nbase: 2080ti\nclock_mhz: 772.5\npeak_fp32_tflops: 9\n").peak_fp32_tflops == 9


@pytest.mark.parametrize("device", list_devices(), ids=lambda device: device.slug)
def test_a_base_alone_changes_nothing(read, device):
    same = read(f"name: Copy\nbase: {device.slug}\n")
    for field in DeviceFile.model_fields.keys() - {"name", "base"}:
        assert getattr(same, field) == getattr(device, field), field


def test_template_describes_a_valid_device(read):
    device = read(TEMPLATE.format(file="mine.yaml"))
    assert device.peak_fp32_tflops == pytest.approx(get_device("1080ti").peak_fp32_tflops, rel=0.01)
    full = read(re.sub(r"(?m)^# (?=[a-z0-9_]+: )", "", TEMPLATE.format(file="mine.yaml")))
    assert (full.l2_mb, full.compute_capability, full.year) == (2.75, "6.1", 2017)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (GOOD + "cores: -1", "cores has to be a whole number from 1 to 10000000, not -1"),
        (GOOD + "l2_mb: 0", "l2_mb has to be a number from 0.01"),
        (GOOD.replace("1000", "1.5"), r"clock_mhz has to be a number from 50 to 10000 \(MHz\), not 1.5"),
        (GOOD.replace("1000", ".nan"), "clock_mhz .* not nan"),
        (GOOD.replace("1000", ".inf"), "clock_mhz .* not inf"),
        (GOOD.replace("1000", "-.inf"), "clock_mhz .* not -inf"),
        (GOOD.replace("1000", "yes"), "clock_mhz .* not True"),
        (GOOD.replace("1000", "fast"), "clock_mhz .* not 'fast'"),
        (GOOD.replace("1000", ""), "missing clock_mhz"),
        (GOOD.replace("sm_count: 10\n", ""), "missing sm_count or cores"),
        (GOOD.replace("sm_count: 10", "sm_count: 3.5"), "sm_count has to be a whole number"),
        (GOOD.replace("sm_count: 10", "sm_count: yes"), "sm_count has to be a whole number"),
        (GOOD + f"year: {10**40}", "year has to be"),
        (GOOD + "kind: tpu", "kind has to be one of gpu, cpu, phone, accelerator, not 'tpu'"),
        (GOOD + "compute_capability: sm_61", 'compute_capability has to be such as "6.1"'),
        (GOOD + "clokc_mhz: 1", "unknown key 'clokc_mhz': did you mean clock_mhz"),
        (GOOD + "zzzz: 1", "unknown key 'zzzz': known are name, base"),
        (GOOD + "peak_fp32_tflops: 2560", "does not fit 2 .* check the units"),
        (GOOD + "cores: 5", r"cores \(5\) cannot be fewer than sm_count"),
        (GOOD + "base_clock_mhz: 2000", "cannot exceed clock_mhz"),
        (GOOD[10:], "name is missing"),
        ("name: ''", "name has to be a text"),
        (f"name: {'x' * 101}", "name has to be a text"),
        ("name: Y\nbase: 1080tii", "base: unknown device '1080tii': did you mean '1080ti'"),
        ("name: Y\nbase: mine.yaml", "base: unknown device 'mine.yaml'"),
        (GOOD + "name: Z", "line 6: name is given twice"),
        ("", "is empty"),
        ("# nothing", "is empty"),
        ("{}", "is empty"),
        ("- a\n- b", "line 1: a device file is a flat list"),
        ("1080ti", "line 1: a device file is a flat list"),
        ("a: {b: 1}", "line 1: .* without lists or nesting"),
        ("[" * 50_000, "without lists or nesting"),
        ("a: &x 1\nb: *x", "line 1: anchors and aliases"),
        ("a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]", "line 1: anchors and aliases"),
        ("a: !!python/object/apply:os.system [ls]", "line 1: tags"),
        ("a: !include x", "line 1: tags"),
        (GOOD + "---\n" + GOOD, "line 6: a second document"),
        ("a: b: c", "line 1: broken YAML"),
        ("a: 'x", "broken YAML"),
        (GOOD + "year: 2001-99-99", "broken YAML"),
        (GOOD + "vendor: \x00", "broken YAML"),
        (b"\xff\xfea", "is no UTF-8 text"),
        (b"#" * (MAX_FILE_BYTES + 1), "larger than 64 KiB"),
    ],
)
def test_a_bad_file_is_one_line(read, text, complaint):
    with pytest.raises(DeviceError, match=complaint) as caught:
        read(text)
    assert "\n" not in str(caught.value)
    assert "mine.yaml" in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DeviceError, match=r"cannot read the device file .*none\.yaml: No such file"):
        get_device(str(tmp_path / "none.yaml"))
    with pytest.raises(DeviceError, match="is a folder"):
        get_device(tmp_path)
    with pytest.raises(DeviceError, match="cannot read the device file"):
        get_device("a\0.yaml")


def test_a_pipe_is_not_waited_for(tmp_path):
    path = tmp_path / "pipe.yaml"
    os.mkfifo(path)
    with pytest.raises(DeviceError, match="pipe"):
        get_device(path)


def test_a_description_by_the_name_of_a_registered_device_is_told_apart_from_it(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("name: 1080ti\nbase: 1080ti\nclock_mhz: 300\n", encoding="utf-8")
    device = get_device(path)
    assert (device.slug, device.base) == ("1080ti-described", "1080ti")
    assert get_device("1080ti").slug == "1080ti"
