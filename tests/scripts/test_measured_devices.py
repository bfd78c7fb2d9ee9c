"""The table; what predicts its rows has tests of its own."""

import pandas as pd
import pytest

import measured_devices


def test_headline_families_and_search_spaces_are_not_among_the_rows():
    def row(family, device, phase, predicted_ms, precision="fp32"):
        return {"family": family, "device": device, "precision": precision, "phase": phase, "latency_ms": 10.0,
                "stack_only_ms": predicted_ms}  # fmt: skip

    rows = pd.DataFrame([
        row("resnet", "2080ti", "inference", 11.0),
        row("densenet", "2080ti", "inference", 7.0),
        row("resnet", "2080ti", "training", 12.5),
        row("resnet", "3090", "training", 10.0, "fp16"),
        row("vgg", "2080ti", "inference", 99.0),
        row("fbnet", "2080ti", "inference", 99.0),
        row("lenet", "v100-pcie", "inference", 99.0),
    ])  # fmt: skip
    records = measured_devices.by_device(rows)
    assert [record["device"] for record in records] == ["2080ti", "3090"]
    assert records[0]["inference"] == {"rows": 2, "mape": pytest.approx(0.2)}
    assert records[0]["backward"] == {"rows": 0, "mape": None}
    assert measured_devices.markdown(records).splitlines()[2:] == [
        "| 2080ti | fp32 | 20.0 (2) |  |  | 25.0 (1) |",
        "| 3090 | fp16 |  |  |  | 0.0 (1) |",
    ]
