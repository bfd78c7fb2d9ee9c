"""Every ablation is a valid configuration that differs from its base."""

from pathlib import Path

import pandas as pd
import pytest

import ablations
from gnnperf.training.config import TrainingConfig

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", [name for name in ablations.VARIANTS if name != "base"])
def test_a_variant_is_a_valid_configuration_of_its_own(name):
    base = ablations.narrowed(TrainingConfig.from_yaml(ROOT / "configs" / "base.yaml"))
    changed = ablations.variant(base, name)
    assert changed != base
    assert changed.data.held_out_families == base.data.held_out_families


def test_the_summary_is_over_rows_and_over_families():
    rows = pd.DataFrame(
        {
            "phase": ["inference"] * 3 + ["training"],
            "precision": "fp32",
            "family": ["resnet", "resnet", "inception", "resnet"],
            "latency_ms": [10.0, 10.0, 10.0, 20.0],
            "stack_only_ms": [11.0, 12.0, 16.0, 10.0],
        }
    )
    summary = ablations.summary(rows)
    assert summary["inference"] == pytest.approx(30.0)
    assert summary["inference_families"] == pytest.approx((15.0 + 60.0) / 2)
    assert summary["training"] == summary["training_families"] == pytest.approx(50.0)
