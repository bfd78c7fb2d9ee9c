"""Ranges of figures, and the devices that they make."""

import pytest

from gnnperf.devices import get_device
from gnnperf.devices.user_file import read_device_file, vary
from gnnperf.devices.variation import VARIABLES, design_space, parse_range
from gnnperf.errors import DeviceError


def test_a_range_holds_both_ends_and_counts_are_whole():
    assert parse_range("clock_mhz=1200:2000:5").values == (1200, 1400, 1600, 1800, 2000)
    assert parse_range(" bandwidth_gb_s=900:300:3").values == (900, 600, 300)
    cores = parse_range("cores=100:201:3").values
    assert cores == (100, 150, 201) and all(isinstance(value, int) for value in cores)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clock=1:2:3", "'clock' is no figure of a device that can be varied: choose from clock_mhz"),
        ("memory_gb=8:16:2", "memory_gb does not change a predicted latency"),
        ("clock_mhz=1200:2000", "is no range: write clock_mhz=START:STOP:COUNT"),
        ("clock_mhz", "is no range"),
        ("clock_mhz=a:b:3", "is no range"),
        ("clock_mhz=1200:2000:2.5", "is no range"),
        ("clock_mhz=nan:2000:3", "an end that is not a finite number"),
        ("clock_mhz=1200:inf:3", "an end that is not a finite number"),
        ("clock_mhz=1200:2000:1", "the count has to be from 2 to 10,000"),
        ("clock_mhz=1200:2000:99999999999", "the count has to be from 2"),
        ("clock_mhz=1200:1200:2", "holds a value twice"),
        ("sm_count=10:12:5", "holds a value twice"),
    ],
)
def test_what_is_no_range_is_refused(text, message):
    with pytest.raises(DeviceError, match=message):
        parse_range(text)


def test_every_combination_once_and_what_depends_on_it_follows():
    base = get_device("1080ti")
    space = design_space(base, [parse_range("sm_count=14:28:2"), parse_range("clock_mhz=1582:3164:2")])
    assert [tuple(point.values()) for point, _ in space] == [(14, 1582), (14, 3164), (28, 1582), (28, 3164)]
    half, _, same, double = (device for _, device in space)
    assert half.cores == base.cores / 2 and half.peak_fp32_tflops == pytest.approx(base.peak_fp32_tflops / 2)
    assert double.peak_fp32_tflops == pytest.approx(2 * base.peak_fp32_tflops)
    assert same.peak_fp32_tflops == base.peak_fp32_tflops and half.bandwidth_gb_s == base.bandwidth_gb_s
    assert len({device.slug for _, device in space}) == 4 and {device.base for _, device in space} == {"1080ti"}


def test_a_device_of_a_user_keeps_the_measured_device_that_it_starts_from(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nbase: titan-xp\nclock_mhz: 1800\n")
    varied = vary(read_device_file(path), {"bandwidth_gb_s": 700})
    assert (varied.base, varied.clock_mhz, varied.bandwidth_gb_s) == ("titan-xp", 1800, 700)
    assert varied.name == "mine with bandwidth_gb_s 700"


@pytest.mark.parametrize("name", VARIABLES)
def test_every_variable_changes_its_figure(name):
    base = get_device("2080ti")
    assert getattr(vary(base, {name: getattr(base, name) * 2}), name) == 2 * getattr(base, name)


def test_impossible_points_are_refused():
    base = get_device("1080ti")
    clock = parse_range("clock_mhz=10:2000:3")
    with pytest.raises(DeviceError, match="clock_mhz has to be a number from 50 to 10000"):
        design_space(base, [clock])
    with pytest.raises(DeviceError, match="clock_mhz is varied twice"):
        design_space(base, [parse_range("clock_mhz=1200:1500:3")] * 2)
    ranges = [parse_range(f"{name}=100:200:101") for name in ("clock_mhz", "bandwidth_gb_s")]
    with pytest.raises(DeviceError, match="10,201 combinations are more than 10,000"):
        design_space(base, ranges)
    with pytest.raises(DeviceError, match="peak_fp32_tflops"):
        design_space(base, [parse_range("peak_fp32_tflops=1:200:2")])
