"""The headline protocol on what ships with gnnperf, and one that trains on a small dataset."""

import json

import numpy as np
import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from gnnperf.cli.main import app
from gnnperf.datasets.dataset import GRAPHS_FILE, MEASUREMENTS_FILE
from gnnperf.datasets.splits import HEADLINE_FAMILIES
from gnnperf.devices.roofline import graph_roofline_ms
from gnnperf.evaluation.metrics import summarise


def run(*arguments):
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


@pytest.fixture(scope="module")
def headline() -> dict:
    result = run("headline", "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_every_row_is_of_a_headline_family_and_says_where_its_truth_is_from(headline):
    from gnnperf import zoo

    assert len(headline["rows"]) > 60
    for row in headline["rows"]:
        assert zoo.family(row["model"]) in HEADLINE_FAMILIES
        assert row["source"] and row["citation"]
        assert row["ape"] == pytest.approx(abs(row["stack_only_ms"] / row["latency_ms"] - 1))


def test_summary_is_over_the_rows_with_and_without_the_campaign(headline):
    rows, summary = headline["rows"], headline["summary"]
    truth = [row["latency_ms"] for row in rows]
    assert summary["rows"] == len(rows)
    assert summary["mape"] == pytest.approx(summarise([row["stack_only_ms"] for row in rows], truth).mape)
    assert summary["mape_with_campaign"] == pytest.approx(summarise([row["predicted_ms"] for row in rows], truth).mape)
    assert summary["ci_low"] < summary["mape"] < summary["ci_high"]


def test_one_phase_two_plots_and_every_row(tmp_path, headline):
    picture = tmp_path / "scatter.png"
    result = run("headline", "--phase", "training", "--rows", "--plot", picture)
    assert result.exit_code == 0, result.output
    for path in (picture, tmp_path / "scatter-families.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
    training = [row for row in headline["rows"] if row["phase"] == "training"]
    assert result.stdout.count("training") >= len(training) > 0
    assert "inference" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["headline", "--plot", "absent/scatter.png"], "cannot write the plot"),
        (["headline", "--steps", "3"], "headline trains nothing: it takes a folder as --predictor, not --steps"),
        (["headline", "--device", "titan-v"], "no headline truth on titan-v"),
        (["headline", "--device", "abacus"], "abacus"),
        (["headline", "--precision", "fp64"], "headline has no fp64 rows on 1080ti"),
        (["families", "--predictor", "x"], "trains a network for each fold: it does not take --predictor"),
        (["families", "--data", "absent"], "no measurements in absent"),
        (["families", "--config", "absent.yaml"], "cannot read the configuration absent.yaml"),
    ],
)
def test_what_cannot_be_done_is_one_line(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr and result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.fixture
def trained(tiny_dataset, tmp_path):
    """Arguments that train two folds of a few steps on a dataset in a folder."""
    frame = tiny_dataset.frame
    other = frame.assign(stack=frame["stack"].cat.rename_categories({"pytorch": "mxnet"}))
    folder = tmp_path / "data"
    folder.mkdir()
    pd.concat([frame, other]).to_parquet(folder / MEASUREMENTS_FILE)
    tiny_dataset.graphs.save(folder / GRAPHS_FILE)
    values = {
        "name": "tiny",
        "network": {"depth": 1, "width": 8, "local_width": 8},
        "optimisation": {"batch": {"model": 4, "search_space": 2, "layer": 2, "unlabelled": 0}},
    }
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(values))
    paths = ["--config", tmp_path / "tiny.yaml", "--data", folder, "--output", tmp_path / "run"]
    return ["stacks", *paths, "--steps", 20]


class Rooflines:
    """Stands in for exported networks, which take longer to write than all steps: twice the roofline."""

    @staticmethod
    def load(folder):
        return Rooflines()

    def latencies(self, graphs, cases, campaigns=None):
        return np.array([2 * graph_roofline_ms(g, device) for g, (device, _) in zip(graphs, cases, strict=True)]), None

    def intervals(self, graphs, cases, latency_ms):
        return np.full(len(graphs), np.nan), np.full(len(graphs), np.nan)


def test_a_protocol_trains_its_folds_and_tells_their_rows_again_without_training(trained, tmp_path, monkeypatch):
    from gnnperf.evaluation.protocols import run as folds_run
    from gnnperf.training import predictor_files

    monkeypatch.setattr(predictor_files, "export_network", lambda network, path: path.write_bytes(b"network"))
    monkeypatch.setattr(folds_run, "Predictor", Rooflines)
    trained += ["--jobs", 1]
    result = run(*trained, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["protocol"] == "stacks" and found["config"] == "tiny"
    assert {record["fold"] for record in found["by_fold"]} == {"pytorch", "mxnet"}
    outside = [row for row in found["rows"] if row["family"] != "nasbench201"]
    expected = summarise([row["stack_only_ms"] for row in outside], [row["latency_ms"] for row in outside])
    assert found["summary"]["mape"] == pytest.approx(expected.mape)
    assert all(row["stack"] == row["fold"] and row["family"] not in HEADLINE_FAMILIES for row in found["rows"])
    assert "pytorch: MAPE" in result.stderr and "by an earlier run" not in result.stderr

    monkeypatch.setattr(folds_run, "fit", lambda *_, **__: pytest.fail("trained again"))
    again = run(*trained, "--json")
    assert json.loads(again.stdout) == found
    assert again.stderr.count("by an earlier run") == 2 and "steps done" not in again.stderr
    tables = run(*trained, "--phase", "inference")
    assert "stacks on 1080ti, inference" in tables.stdout and "training" not in tables.stdout

    other = run(*trained, "--seed", 1)
    assert other.exit_code == 1 and "belongs to another configuration" in other.stderr
    assert other.stderr.count("\n") == 1


def test_what_fails_in_a_process_is_one_line(trained, tmp_path):
    for stack in ("pytorch", "mxnet"):
        (tmp_path / "run" / stack).mkdir(parents=True)
        (tmp_path / "run" / stack / "last.ckpt").write_bytes(b"nonsense")
    result = run(*trained, "--jobs", 2)
    assert result.exit_code == 1
    assert "last.ckpt is no checkpoint of `gnnperf train`, or damaged" in result.stderr
    assert result.stderr.count("\n") == 1
