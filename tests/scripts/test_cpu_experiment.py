"""The experiment's table and its time budget; what it measures and trains has tests of its own."""

import json
from pathlib import Path

import pandas as pd

import cpu_experiment
from gnnperf.measure.rows import read_rows

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"


def scored(model, family, phase, truth, ours, resperfnet):
    columns = dict.fromkeys(["stack_only_ms", "analytic_ms", "linear_ms", "roofline_ms"], truth)
    return {"model": model, "family": family, "phase": phase, "latency_ms": truth, "predicted_ms": ours,
            "resperfnet_ms": resperfnet, **columns}  # fmt: skip


def test_the_table_has_a_line_for_each_network_asked_about_and_each_family():
    rows = pd.DataFrame([
        scored("lenet", "lenet", "inference", 10.0, 11.0, 15.0),
        scored("resnet18@64", "resnet", "inference", 10.0, 9.0, 20.0),
        scored("resnet34@64", "resnet", "inference", 10.0, 13.0, float("nan")),
        scored("lenet", "lenet", "training", 10.0, 10.0, 10.0),
        scored("lenet", "lenet", "forward", 10.0, 99.0, 99.0),
    ])  # fmt: skip
    lines = {}
    for line in cpu_experiment.table(rows).splitlines()[2:]:
        label, count, *figures = [cell.strip() for cell in line.strip("|").split("|")]
        lines[label] = (int(count), dict(zip(cpu_experiment.METHODS, figures, strict=True)))
    assert lines["LeNet, inference"][1]["gnnperf"] == "10.0" and lines["LeNet, inference"][1]["ResPerfNet"] == "50.0"
    count, figures = lines["resnet (family), inference"]
    assert count == 2 and figures["gnnperf"] == "20.0" and figures["ResPerfNet"] == "100.0 (1 rows)"
    assert lines["**all families**, training"][0] == 1
    assert lines["**all families**, inference"][1]["gnnperf"] == "16.7"
    assert lines["**all families**, inference, median"][1]["gnnperf"] == "10.0"
    assert not any("forward" in label for label in lines)


def test_an_error_beyond_all_bounds_is_not_spelt_out():
    rows = pd.DataFrame([scored("lenet", "lenet", "inference", 1.0, 10.9, 1e9)])
    (line,) = [line for line in cpu_experiment.table(rows).splitlines() if line.startswith("| LeNet, inference")]
    assert "| 990.0 |" in line and "| > 1,000 |" in line


def test_the_tables_that_ship_are_what_the_document_says():
    networks = read_rows(DATA / cpu_experiment.NETWORKS)
    layers = read_rows(DATA / cpu_experiment.LAYERS)
    assert (len(networks), len({row.model for row in networks})) == (846, 385)
    assert (len(layers), len({row.model for row in layers})) == (3235, 2200)
    assert sum(not row.quiet for row in [*networks, *layers]) == 5
    for table, rows in ((cpu_experiment.NETWORKS, networks), (cpu_experiment.LAYERS, layers)):
        machines = json.loads((DATA / table).with_suffix(".machines.json").read_text())
        assert {row.machine for row in rows} == set(machines)
        assert {row.device for row in rows} == {"cpu_device.yaml"} and (DATA / "cpu_device.yaml").exists()


def test_no_case_begins_after_the_time_is_up(monkeypatch):
    now = iter(range(100))
    monkeypatch.setattr(cpu_experiment.time, "monotonic", lambda: next(now))
    assert list(cpu_experiment._until("abcdefgh", end=3)) == ["a", "b", "c"]


def test_its_tables_are_sources_of_their_own():
    assert cpu_experiment._source(cpu_experiment.NETWORKS) != cpu_experiment._source(cpu_experiment.LAYERS)
