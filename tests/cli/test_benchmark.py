"""The benchmark on what ships with gnnperf."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from gnnperf.cli.main import app
from gnnperf.evaluation.metrics import summarise

ENDINGS = {"csv": "csv", "markdown": "md", "plot": "png"}
FAST = "gnnperf,gnnperf-untold,roofline"


def run(*arguments):
    return CliRunner().invoke(app, ["benchmark", *map(str, arguments)])


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark")
    files = {name: folder / f"benchmark.{ending}" for name, ending in ENDINGS.items()}
    options = [argument for name, path in files.items() for argument in (f"--{name}", path)]
    result = run("--only", FAST, "--cache", folder / "cache", "--json", *options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), files


def test_a_clone_alone_scores_end_to_end_rows_and_says_what_is_missing(found):
    data, _ = found
    assert {(part["truth"], part["phase"]) for part in data["parts"]} == {
        ("end-to-end", "inference"),
        ("end-to-end", "training"),
    }
    assert any("--resperfnet" in note for note in data["notes"]) and any("--folds" in note for note in data["notes"])
    assert {row["source"] for row in data["rows"]} == {
        "dlinfbench", "cnn_benchmarks", "pytorch_gpu_benchmark", "whole_models"
    }  # fmt: skip


def test_figures_are_those_of_the_rows(found):
    data, files = found
    rows = pd.read_csv(files["csv"])
    part = next(part for part in data["parts"] if part["phase"] == "inference")
    vgg16 = rows[(rows["network"] == "vgg16") & (rows["phase"] == "inference")]
    for name in FAST.split(","):
        mape = summarise(vgg16[name], vgg16["latency_ms"]).mape
        assert part["methods"][name]["vgg16"]["mape"] == pytest.approx(mape, rel=1e-3)
    assert files["markdown"].read_text().count("| gnnperf |") >= 4
    assert files["plot"].read_bytes().startswith(b"\x89PNG")


def test_tables_say_what_a_truth_is_and_rows_where_it_is_from(tmp_path):
    result = run("--only", "gnnperf", "--cache", tmp_path, "--rows")
    assert result.exit_code == 0, result.output
    assert "data/published.csv" in result.stdout and "ResPerfNet 8.4 %" in result.stdout
    assert result.stdout.count("dlinfbench") > 80
    assert not list(tmp_path.iterdir())  # nothing was fitted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "oracle"], "no method is named oracle; there is gnnperf"),
        (["--data", "absent"], "no measurements in absent"),
        (["--resperfnet", "absent"], "give the folder with ResPerfNet's measurements"),
        (["--predictor", "absent"], "cannot read the predictor"),
        (["--folds", "absent"], "absent holds no network that `gnnperf evaluate` trained"),
        (["--device-folds", "absent"], "(--device-folds)"),
        (["--only", "gnnperf", "--csv", "absent/rows.csv"], "cannot write absent/rows.csv"),
    ],
)
def test_what_cannot_be_done_is_one_line(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr and result.stderr.count("\n") == 1
