"""``gnnperf tune``: the whole trip on a small dataset, shared and continued, and one line for what was wrong."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from gnnperf.cli.main import app
from gnnperf.datasets.dataset import GRAPHS_FILE, MEASUREMENTS_FILE
from gnnperf.training.config import TrainingConfig


@pytest.fixture
def arguments(tiny_dataset, tmp_path):
    """A command of few trials of few steps on a dataset in a folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    tiny_dataset.frame.to_parquet(folder / MEASUREMENTS_FILE)
    tiny_dataset.graphs.save(folder / GRAPHS_FILE)
    values = {
        "name": "tiny",
        "network": {"depth": 1, "width": 16, "local_width": 16},
        "optimisation": {"steps": 40, "batch": {"model": 8, "search_space": 2, "layer": 16, "unlabelled": 0}},
    }
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(values))
    return [tmp_path / "tiny.yaml", "--data", folder, "--output", tmp_path / "out", "--steps", 2, "--confirm", 1]


def run(*arguments):
    return CliRunner().invoke(app, ["tune", *map(str, arguments)])


def test_a_study_is_stopped_continued_and_ends_with_a_winner(arguments, tmp_path, monkeypatch):
    from gnnperf.tuning.scoring import ValidationRows

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ValidationRows, "mape", interrupt)
        result = run(*arguments, "--trials", 2)
    assert result.exit_code == 130 and "the trial is queued again and the study kept" in result.stderr
    assert "each trial trains 2 steps without densenet+resnet+squeezenet, scored on its 12 rows" in result.stderr

    result = run(*arguments, "--trials", 2, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["trials"]["fail"] == 1 and found["trials"]["complete"] == 2
    assert found["configuration"]["trial"] == 1  # trial 0, queued again
    assert {candidate["trial"] for candidate in found["confirmed"]} == {1, found["best"]["trial"]}
    assert result.stderr.count("confirmation") == 2 * len(found["confirmed"])
    won = TrainingConfig.from_yaml(tmp_path / "out" / "tiny-tuned.yaml")
    assert won.name == "tiny-tuned" and won.optimisation.steps == 40
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {"study.db", "trials.csv", "summary.json", "REPORT.md", "history.png"}

    result = run(*arguments, "--trials", 2)  # nothing is left to do
    assert result.exit_code == 0 and "%" not in result.stderr
    assert result.stdout.startswith("# Study tiny") and "| winner | " in result.stdout

    result = run(*arguments, "--trials", 3, "--steps", 3)
    assert result.exit_code == 1 and result.stderr.count("\n") == 1
    assert "was made with another configuration, steps" in result.stderr


def test_a_configuration_outside_the_search_space_is_said(arguments, tmp_path):
    values = yaml.safe_load((tmp_path / "tiny.yaml").read_text())
    values["network"]["width"] = 8
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(values))
    result = run(*arguments, "--trials", 1, "--confirm", 0, "--storage", tmp_path / "s.journal")
    assert result.exit_code == 0, result.output
    assert "the configuration itself is not tried: the search has no network.width 8" in result.stderr


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--storage", "study.txt"], "give a SQLite file"),
        (["--study", "a/b"], "a study cannot be named 'a/b'"),
        (["--device", "abacus"], "abacus"),
        (["--device", "titan-v"], "nothing to tune by: titan-v has no FP32 row"),
        (["--data", "absent"], "no measurements in absent"),
        (["--output", "tiny.yaml"], "cannot make the folder"),
        (["--compare", "--resperfnet", "absent"], "absent is no folder"),
        (["--resperfnet", "."], "--resperfnet is for --compare"),
    ],
)
def test_what_cannot_be_done_is_one_line(arguments, tmp_path, monkeypatch, changes, message):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments, *changes)
    assert result.exit_code == 1
    assert message in result.stderr and result.stderr.count("\n") == 1
