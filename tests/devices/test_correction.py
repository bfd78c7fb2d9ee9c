"""Scales in a device file: read as written, anything else refused."""

import pytest

from gnnperf.devices import get_device
from gnnperf.devices.correction import Correction
from gnnperf.devices.user_file import vary
from gnnperf.errors import DeviceError

HEAD = "name: mine\nbase: 1080ti\n"
GOOD = f"""{HEAD}adapted_measurements: 10
adapted_predictor: 0123456789abcdef
scale_launch: 1.25
scale_device_dense: 0.5
"""


@pytest.fixture
def read(tmp_path):
    def read(text: str):
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        return get_device(path)

    return read


def test_scales_are_read(read):
    correction = read(GOOD).correction
    assert correction == Correction((("launch", 1.25), ("device_dense", 0.5)), 10, "0123456789abcdef")
    assert correction.to_keys()["scale_device_dense"] == 0.5
    assert read(HEAD).correction is None and get_device("1080ti").correction is None


def test_a_varied_device_keeps_its_scales(read):
    assert vary(read(GOOD), {"clock_mhz": 2000}).correction == read(GOOD).correction


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("scale_launch: 1.25", "scale_lunch: 1.25"), "unknown key 'scale_lunch': did you mean scale_launch?"),
        (("scale_launch: 1.25", "scale_launch: 0"), "scale_launch has to be a factor from 0.01 to 100, not 0"),
        (("scale_launch: 1.25", "scale_launch: .nan"), "has to be a factor"),
        (("scale_launch: 1.25", "scale_launch: yes"), "has to be a factor"),
        (("scale_launch: 1.25", "scale_launch: fast"), "has to be a factor from 0.01 to 100, not 'fast'"),
        (("adapted_measurements: 10\n", ""), "adapted_measurements is missing, which `gnnperf adapt` writes"),
        (("adapted_measurements: 10", "adapted_measurements: -1"), "has to be a whole number, not -1"),
        (
            ("0123456789abcdef", "none"),
            "adapted_predictor has to be the 16 digits that `gnnperf adapt` writes",
        ),
    ],
)
def test_what_is_no_scale_is_refused(read, change, message):
    with pytest.raises(DeviceError, match=message) as error:
        read(GOOD.replace(*change))
    assert "mine.yaml" in str(error.value)
