"""Curves of an adaptation, on a device whose scales are known."""

import numpy as np
import pandas as pd
import pytest

import adaptation_curves
from gnnperf.adaptation.components import Components
from gnnperf.devices.correction import SCALES
from gnnperf.graph.operator_groups import OPERATOR_GROUPS


@pytest.fixture(scope="module")
def records() -> pd.DataFrame:
    """150 networks that wait for their launches, on a host that takes 1.5 times as long."""
    random = np.random.default_rng(0)
    launch_ms = random.uniform(0.1, 1, (150, len(OPERATOR_GROUPS)))
    none = np.zeros(150)
    parts = Components(launch_ms.sum(1), launch_ms, launch_ms * 1e-3, none, none, none)
    log_scales = np.zeros(len(SCALES))
    log_scales[SCALES.index("launch")] = np.log(1.5)
    noise = np.exp(random.normal(0, 0.01, 150))
    task = adaptation_curves.Task("2080ti", "nasbench201", 1, parts, parts.scaled(log_scales)[0] * noise)
    return pd.DataFrame(adaptation_curves.curves(task, draws=2, scored=50))


def test_every_budget_is_drawn_by_each_choice_and_ten_measurements_suffice(records):
    assert len(records) == 2 * 2 * len(adaptation_curves.BUDGETS)
    mape = records.groupby(["choice", "budget"])["mape"].mean()
    for choice in ("kmeans", "random"):
        assert mape[choice, 0] == pytest.approx(1 / 3, abs=0.01)
        assert mape[choice, 10] < 0.05 and mape[choice, 100] < 0.02


def test_the_table_has_a_line_for_each_task_and_for_each_choice(records):
    head, _, *lines = adaptation_curves.table(records, "mape", 100, 1).splitlines()
    assert head == "| mape | 0 | 3 | 10 | 30 | 100 |"
    titles = [line.split(" | ")[0].removeprefix("| ") for line in lines]
    assert titles == ["2080ti, nasbench201, batch 1", "**GPUs, nasbench201, kmeans**", "**GPUs, nasbench201, random**"]
    assert lines[0].split(" | ")[1].startswith("33.")


def test_the_picture_is_written(records, tmp_path):
    other = records.assign(space="fbnet")
    adaptation_curves.plot(pd.concat([records, other]), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
