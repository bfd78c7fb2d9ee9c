"""The experiment's table and its time budget; what it measures and trains has tests of its own."""

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/cpu_experiment.py"


@pytest.fixture(scope="module")
def experiment():
    specification = importlib.util.spec_from_file_location("cpu_experiment", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def scored(model, family, phase, truth, ours, resperfnet):
    columns = dict.fromkeys(["stack_only_ms", "analytic_ms", "linear_ms", "roofline_ms"], truth)
    return {"model": model, "family": family, "phase": phase, "latency_ms": truth, "predicted_ms": ours,
            "resperfnet_ms": resperfnet, **columns}  # fmt: skip


def test_the_table_has_a_line_for_each_network_asked_about_and_each_family(experiment):
    rows = pd.DataFrame([
        scored("lenet", "lenet", "inference", 10.0, 11.0, 15.0),
        scored("resnet18@64", "resnet", "inference", 10.0, 9.0, 20.0),
        scored("resnet34@64", "resnet", "inference", 10.0, 13.0, float("nan")),
        scored("lenet", "lenet", "training", 10.0, 10.0, 10.0),
        scored("lenet", "lenet", "forward", 10.0, 99.0, 99.0),
    ])  # fmt: skip
    lines = {}
    for line in experiment.table(rows).splitlines()[2:]:
        label, count, *figures = [cell.strip() for cell in line.strip("|").split("|")]
        lines[label] = (int(count), dict(zip(experiment.METHODS, figures, strict=True)))
    assert lines["LeNet, inference"][1]["gnnperf"] == "10.0" and lines["LeNet, inference"][1]["ResPerfNet"] == "50.0"
    count, figures = lines["resnet (family), inference"]
    assert count == 2 and figures["gnnperf"] == "20.0" and figures["ResPerfNet"] == "100.0 (1 rows)"
    assert lines["**all families**, training"][0] == 1
    assert not any("forward" in label for label in lines)


def test_no_case_begins_after_the_time_is_up(experiment, monkeypatch):
    now = iter(range(100))
    monkeypatch.setattr(experiment.time, "monotonic", lambda: next(now))
    assert list(experiment._until("abcdefgh", end=3)) == ["a", "b", "c"]


def test_its_tables_are_sources_of_their_own(experiment):
    assert experiment._source(experiment.NETWORKS) != experiment._source(experiment.LAYERS)
