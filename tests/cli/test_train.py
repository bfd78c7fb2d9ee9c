"""``gnnperf train``: the whole trip on rows that ship, and one line for what the user got wrong."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from gnnperf.cli.main import app
from gnnperf.resources import resource


@pytest.fixture
def config(tmp_path):
    """The smoke configuration, with fewer steps and changes."""

    def write(**changes):
        values = yaml.safe_load(resource("configs/smoke.yaml").read_text())
        values["optimisation"] |= {"steps": 3}
        values |= changes
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(values))
        return path

    return write


def run(*arguments):
    return CliRunner().invoke(app, ["train", *map(str, arguments)])


def test_a_clone_trains_scores_and_predicts_without_fetching_anything(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(config())
    assert result.exit_code == 0, result.stderr
    assert "rows by source: dlinfbench" in result.stderr and "step 3 of 3: loss" in result.stderr
    assert "MAPE in % on families that were held out" in result.stdout
    scored = {line.split()[1] for line in result.stdout.splitlines() if line.startswith("inference")}
    assert scored == {"lenet", "alexnet", "vgg", "all"}
    folder = tmp_path / "runs" / "smoke"
    card = (folder / "CARD.md").read_text()
    assert "Never trained on: every row of lenet, alexnet, vgg" in card
    assert json.loads((folder / "metrics.json").read_text())["summary"]["inference"]["rows"] > 80
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "runs"]

    result = CliRunner().invoke(app, ["zoo", "export", "resnet18", "-o", str(tmp_path / "net.onnx")])
    result = CliRunner().invoke(app, ["predict", str(tmp_path / "net.onnx"), "--predictor", str(folder), "--json"])
    assert json.loads(result.stdout)[0]["latency_ms"] > 0


def test_the_folder_that_is_named_goes_before_the_rows_that_ship(config, tmp_path):
    result = run(config(), "--data", tmp_path / "nowhere")
    assert result.exit_code == 1 and "no measurements in" in result.stderr


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stepps": 1}, "stepps"),
        ({"data": {"published": True, "held_out_families": ["vvg"]}}, "vvg"),
        ({"data": {"published": True, "devices": ["v100"]}}, "v100"),
        ({"data": {}}, "no measurements in gnnperf-data"),
    ],
)
def test_a_wrong_configuration_is_one_line(config, tmp_path, monkeypatch, changes, message):
    monkeypatch.chdir(tmp_path)
    result = run(config(**changes))
    assert result.exit_code == 1
    assert message in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_an_output_that_cannot_be_written_is_one_line(config, tmp_path):
    (tmp_path / "file").write_text("")
    result = run(config(), "-o", tmp_path / "file" / "run", "--quiet")
    assert result.exit_code == 1 and "cannot write to" in result.stderr and result.stderr.count("\n") == 1
