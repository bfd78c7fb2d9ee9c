"""``gnnperf calibrate`` from the outside: what it prints, writes and refuses."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from gnnperf.cli.main import app
from gnnperf.datasets.dataset import Dataset
from gnnperf.resources import resource
from gnnperf.training.config import TrainingConfig

runner = CliRunner()


@pytest.fixture
def predictor(tmp_path):
    """The shipped network with a configuration that the tiny dataset can be split by."""
    folder = shutil.copytree(resource("pretrained/base"), tmp_path / "predictor")
    (folder / "measured.json").unlink()  # `calibrate` writes that of the tiny dataset
    description = json.loads((folder / "predictor.json").read_text())
    description.pop("intervals", None)
    description["config"] = TrainingConfig(name="tiny").model_dump(mode="json")
    (folder / "predictor.json").write_text(json.dumps(description))
    return folder


@pytest.fixture
def rows(tiny_dataset, tmp_path):
    frame = tiny_dataset.frame[tiny_dataset.frame["kind"] == "model"]
    frame = frame[frame["family"].isin(["resnet", "densenet", "squeezenet", "vgg"])]
    off = np.random.default_rng(0).normal(0, 0.1, len(frame))
    path = tmp_path / "rows.csv"
    frame.assign(fold=frame["family"], stack_only_ms=frame["latency_ms"] * np.exp(off)).to_csv(path, index=False)
    return path


@pytest.fixture(autouse=True)
def data(tiny_dataset, monkeypatch):
    monkeypatch.setattr(Dataset, "open", classmethod(lambda cls, folder: tiny_dataset))


def test_coverage_is_shown_and_rows_get_their_intervals(predictor, rows, tmp_path):
    covered = tmp_path / "covered.csv"
    result = runner.invoke(app, ["calibrate", str(predictor), "--rows", str(rows), "--output", str(covered)])
    assert result.exit_code == 0, result.output
    for text in ("densenet", "left out", "vgg", "test", "%", "guarantees for one more family"):
        assert text in result.output
    table = pd.read_csv(covered)
    assert (table["low_ms"] < table["stack_only_ms"]).all() and (table["stack_only_ms"] < table["high_ms"]).all()

    model = tmp_path / "net.onnx"
    assert runner.invoke(app, ["zoo", "export", "resnet18", "-o", str(model)]).exit_code == 0
    shown = runner.invoke(app, ["predict", str(model), "--predictor", str(predictor), "--top", "1"])
    assert shown.exit_code == 0 and "ms (90 %: " in shown.output and "nearest     resnet18 (pytorch" in shown.output
    many = runner.invoke(app, ["predict", str(model), "--predictor", str(predictor), "-b", "1,2,4,8,16"])
    assert many.exit_code == 0 and "90 %" in many.output
    values = json.loads(runner.invoke(app, ["predict", str(model), "--predictor", str(predictor), "--json"]).stdout)[0]
    assert values["low_ms"] < values["latency_ms"] < values["high_ms"] and values["distance"] < 0.1


def test_without_calibration_it_is_said(predictor, tmp_path):
    model = tmp_path / "net.onnx"
    runner.invoke(app, ["zoo", "export", "lenet", "-o", str(model)])
    result = runner.invoke(app, ["predict", str(model), "--predictor", str(predictor)])
    assert result.exit_code == 0 and "no interval: this predictor was never calibrated" in result.output
    assert json.loads(
        runner.invoke(app, ["predict", str(model), "--predictor", str(predictor), "--json"]).stdout
    )[0]["low_ms"] is None  # fmt: skip


def test_json_is_what_is_written(predictor, rows):
    result = runner.invoke(app, ["calibrate", str(predictor), "--rows", str(rows), "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads((predictor / "predictor.json").read_text())["intervals"]


def test_folds_or_rows(predictor, rows, tmp_path):
    for given in ([], ["--rows", str(rows), "--folds", str(tmp_path)]):
        result = runner.invoke(app, ["calibrate", str(predictor), *given])
        assert result.exit_code == 2 and "give one of --folds and --rows" in result.stderr


@pytest.mark.parametrize("wrong", ["no predictor", "no rows", "no such column", "output"])
def test_what_cannot_be_is_one_line(predictor, rows, tmp_path, wrong):
    folder, table, output = predictor, rows, tmp_path / "covered.csv"
    if wrong == "no predictor":
        folder = tmp_path / "nothing"
    elif wrong == "no rows":
        table = tmp_path / "nothing.csv"
    elif wrong == "no such column":
        table = tmp_path / "other.csv"
        table.write_text("a,b\n1,2\n")
    else:
        output = tmp_path / "no such folder" / "covered.csv"
    result = runner.invoke(app, ["calibrate", str(folder), "--rows", str(table), "--output", str(output)])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
