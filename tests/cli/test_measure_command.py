"""``gnnperf measure`` from outside: what is printed, what is refused, and with which exit code."""

import json

import pytest
from typer.testing import CliRunner

from gnnperf.cli.main import app
from gnnperf.measure.rows import read_rows

QUICK = ["--seconds", "0.05", "--precision", "0.5", "--device", "1080ti"]


@pytest.fixture
def gnnperf(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        return CliRunner().invoke(app, ["measure", *arguments])

    return call


def test_rows_in_the_table_and_as_json(gnnperf, tmp_path):
    result = gnnperf("lenet5", "--batch", "1,2", "-o", "mine.csv", "--json", *QUICK)
    assert result.exit_code == 0
    printed = json.loads(result.stdout)
    assert [row["batch"] for row in printed] == [1, 2] == [row.batch for row in read_rows(tmp_path / "mine.csv")]
    assert printed[0]["energy_mj"] is None or printed[0]["energy_mj"] > 0
    assert "2 new rows" in result.stderr
    again = gnnperf("lenet5", "--batch", "1,2", "-o", "mine.csv", *QUICK)
    assert again.exit_code == 0 and "0 new rows, 2 measured before" in again.stderr


def test_a_described_device_is_kept_relative_to_the_table(gnnperf, tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "my.yaml").write_text("name: mine\nbase: 1080ti\nclock_mhz: 1700\n")
    options = ["--seconds", "0.05", "--precision", "0.5", "--device", "my.yaml"]
    assert gnnperf("lenet5", "-o", "tables/mine.csv", *options).exit_code == 0
    assert {row.device for row in read_rows(tmp_path / "tables/mine.csv")} == {"../my.yaml"}
    imported = CliRunner().invoke(app, ["data", "import", "measured", "tables/mine.csv", "--to", "data"])
    busy = "busy" in imported.stderr
    assert busy or "mine.csv: 1 rows" in imported.stdout


def test_one_failure_does_not_stop_the_others(gnnperf, tmp_path):
    result = gnnperf("lenet6", "lenet5", "-o", "mine.csv", *QUICK)
    assert result.exit_code == 1
    errors = [line for line in result.stderr.splitlines() if line.startswith("error")]
    assert len(errors) == 1 and "lenet6" in errors[0]
    assert [row.model for row in read_rows(tmp_path / "mine.csv")] == ["lenet5"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["lenet5", "--device", "1080ti", "--backend", "tvm"], "no backend 'tvm'"),
        (["lenet5", "--device", "1080ti", "--backend", "onnxruntime-cuda"], "built without CUDAExecutionProvider"),
        (["lenet5", "--device", "1080ti", "--window", "session"], "needs a GPU"),
        (["lenet5", "--device", "1080ti", "--cpus", "9999"], "no list of processors that this process may use"),
        (["lenet5", "--device", "abacus"], "unknown device 'abacus'"),
    ],
)
def test_what_cannot_be_measured_here_is_one_line(gnnperf, tmp_path, arguments, complaint):
    result = gnnperf(*arguments, "-o", "mine.csv")
    assert result.exit_code == 1 and not (tmp_path / "mine.csv").exists()
    (line,) = result.stderr.strip().splitlines()
    assert complaint in line


@pytest.mark.parametrize("batch", ["0", "1,x", ""])
def test_batches_that_are_none_are_wrong_usage(gnnperf, batch):
    assert gnnperf("lenet5", "-o", "mine.csv", "--batch", batch).exit_code == 2


def test_another_file_is_not_overwritten(gnnperf, tmp_path):
    (tmp_path / "net.onnx").write_bytes(b"precious")
    result = gnnperf("lenet5", "-o", "net.onnx", *QUICK)
    assert result.exit_code == 1 and "was not written by" in result.stderr
    assert (tmp_path / "net.onnx").read_bytes() == b"precious"
