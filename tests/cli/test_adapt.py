"""From measurements to a device file that every command takes."""

import csv
import json

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from gnnperf import zoo
from gnnperf.cli.main import app
from gnnperf.predictor import Predictor

SPECS = ("squeezenet1_1", "resnet18", "mobilenet_v2", "nasbench201/012340", "nasbench201/111111", "densenet121")


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "net.onnx"
    path.write_bytes(zoo.build("resnet34", batch="N").SerializeToString())
    return path


@pytest.fixture
def table(tmp_path, model):
    """Times on a device whose host needs twice as long, a tenth of it as noise; one network by its file's name."""
    predictor = Predictor.load()
    path = tmp_path / "mine.csv"
    factor = 2 * np.exp(np.random.default_rng(0).normal(0, 0.02, len(SPECS) + 1))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "latency_ms", "batch"])
        for spec, times in zip(SPECS, factor, strict=False):
            latency_ms = predictor.predict(zoo.build(spec), device="2080ti").latency_ms
            writer.writerow([spec, latency_ms * times, 1])
        (tmp_path / "net.onnx").write_bytes(model.read_bytes())
        writer.writerow(["net.onnx", predictor.predict(model, device="2080ti").latency_ms * factor[-1], 1])
    return path


def test_the_device_file_predicts_what_was_measured(tmp_path, table, model):
    output = tmp_path / "mine.yaml"
    result = run("adapt", "--device", "2080ti", "--measurements", table, "--output", output, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["measurements"] == 7 and found["left_out"] == 0
    assert found["mape_before"] == pytest.approx(0.5, abs=0.03)
    assert found["mape_fitted"] < found["mape_of_networks_left_out"] < 0.1
    assert found["scales"]["launch"] == pytest.approx(2, rel=0.3)

    before, after = json.loads(run("predict", model, "-d", "2080ti", "-d", output, "--json").stdout)
    assert after["latency_ms"] == pytest.approx(2 * before["latency_ms"], rel=0.1)
    assert any("not trained on: the prediction follows from its description and 7 measurements" in warning
               for warning in after["warnings"])  # fmt: skip
    assert sum(item["latency_ms"] for item in after["operators"]) <= after["latency_ms"]


def test_adapting_again_starts_from_the_description_and_forgets_nothing(tmp_path, table):
    first, again = tmp_path / "first.yaml", tmp_path / "again.yaml"
    described = tmp_path / "described.yaml"
    described.write_text("name: my box\nbase: 2080ti\nclock_mhz: 1700\n")
    assert run("adapt", "-d", described, "-m", table, "-o", first).exit_code == 0
    assert run("adapt", "-d", first, "-m", table, "-o", again).exit_code == 0
    assert first.read_text() == again.read_text()
    values = yaml.safe_load(first.read_text())
    assert (values["name"], values["base"], values["clock_mhz"]) == ("my box", "2080ti", 1700)
    shown = run("devices", "show", first).stdout
    assert "fitted to 7 measurements" in shown and "launch x" in shown
    assert "correction" not in run("devices", "show", described).stdout


def test_a_file_that_is_there_is_kept(tmp_path, table, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("adapt", "-d", "2080ti", "-m", table).exit_code == 0
    written = (tmp_path / "2080ti-adapted.yaml").read_text()
    result = run("adapt", "-d", "2080ti", "-m", table)
    assert result.exit_code == 1 and "2080ti-adapted.yaml exists already" in result.stderr
    assert run("adapt", "-d", "2080ti", "-m", table, "--overwrite").exit_code == 0
    assert (tmp_path / "2080ti-adapted.yaml").read_text() == written


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("model,latency_ms\nresnet18,nan\n", "line 2: latency_ms has to be a positive number, not 'nan'"),
        ("model,latency_ms\nresnet18,3\nresnet34,0\n", "line 3: latency_ms has to be a positive number, not '0'"),
        ("model,latency_ms\nresnet18,-3\n", "line 2: latency_ms"),
        ("model,latency_ms\nabsent.onnx,3\n", "row 1: "),
        ("model,latency_ms\nresnet18,3\nresnot18,3\n", "row 2: "),
        ("model,latency_ms,phase\nresnet18,3,sideways\n", "line 2: phase has to be one of"),
        ("model,latency_ms,device\nresnet18,3,1080ti\n", "row 1 was measured on GeForce GTX 1080 Ti, not on"),
        ("model,latency_ms,device\nresnet18,3,abacus\n", "row 1: unknown device 'abacus'"),
        ("model,latency_ms,layer\nresnet18,3,conv1\n", "holds no measurement of a whole network"),
        ("model,latency_ms\n", "holds no measurement of a whole network"),
        ("model\nresnet18\n", "column latency_ms is missing"),
    ],
)
def test_bad_rows_are_refused_by_number_and_reason(tmp_path, rows, message):
    table = tmp_path / "mine.csv"
    table.write_text(rows)
    result = run("adapt", "-d", "2080ti", "-m", table, "-o", tmp_path / "out.yaml")
    assert result.exit_code == 1 and message in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "out.yaml").exists()


def test_suggestions_come_from_the_pool_and_unreadable_files_are_said(tmp_path, model):
    pool = tmp_path / "pool"
    (pool / "deep").mkdir(parents=True)
    (pool / "deep" / "net.onnx").write_bytes(model.read_bytes())
    (pool / "broken.onnx").write_bytes(b"no model")
    others = [part for spec in SPECS for part in ("--pool", spec)]
    result = run("adapt", "-d", "2080ti", "--suggest", 3, "--pool", pool, *others, "--json")
    assert result.exit_code == 0, result.output
    names = [record["model"] for record in json.loads(result.stdout)]
    assert len(set(names)) == 3 and set(names) <= {*SPECS, str(pool / "deep" / "net.onnx")}
    assert "broken.onnx is left out" in result.stderr
    again = run("adapt", "-d", "2080ti", "--suggest", 3, "--pool", pool, *others)
    assert [line.split("  (")[0] for line in again.stdout.splitlines()] == names
    drawn = run("adapt", "-d", "2080ti", "--suggest", 3, *others, "--choice", "random", "--seed", 1, "--json")
    assert len(json.loads(drawn.stdout)) == 3


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        ([], "give one of --measurements and --suggest", 2),
        (["--suggest", 3, "--measurements", "a.csv"], "give one of --measurements and --suggest", 2),
        (["--measurements", "absent.csv"], "cannot read absent.csv", 1),
        (["--measurements", "a.csv", "--pool", "zoo"], "--pool goes with --suggest", 2),
        (["--suggest", 3], "the pool holds no network that can be read", 1),
        (["--suggest", 3, "--pool", "resnet18"], "the pool holds 1 networks, so 3 cannot be chosen", 1),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path, monkeypatch, arguments, message, code):
    monkeypatch.chdir(tmp_path)
    result = run("adapt", "--device", "2080ti", *arguments)
    assert result.exit_code == code and message in " ".join(result.stderr.replace("│", " ").split())


def test_a_wrong_unit_is_refused_and_nothing_written(tmp_path, table):
    header, *lines = table.read_text().splitlines()
    micro = [f"{spec},{float(latency) * 1e6},{batch}" for spec, latency, batch in (line.split(",") for line in lines)]
    table.write_text("\n".join([header, *micro]) + "\n")
    output = tmp_path / "mine.yaml"
    result = run("adapt", "--device", "2080ti", "--measurements", table, "--output", output)
    assert result.exit_code == 1 and "milliseconds" in result.stderr and not output.exists()


def test_one_measurement_is_a_warning(tmp_path, table):
    table.write_text("\n".join(table.read_text().splitlines()[:2]) + "\n")
    result = run("adapt", "--device", "2080ti", "--measurements", table, "--output", tmp_path / "mine.yaml")
    assert result.exit_code == 0 and "more harm than good" in result.stderr


def test_the_table_itself_is_no_output(table):
    before = table.read_bytes()
    result = run("adapt", "--device", "2080ti", "--measurements", table, "--output", table, "--overwrite")
    assert result.exit_code == 1 and "table of measurements" in result.stderr and table.read_bytes() == before


def test_suggestions_can_be_measured():
    result = run("adapt", "--device", "1080ti", "--suggest", "2", "--pool", "gpt3_xl", "--pool", "lenet5",
                 "--pool", "resnet18", "--json")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert {found["model"] for found in json.loads(result.stdout)} == {"lenet5", "resnet18"}
    assert "1 of 3 networks are left out" in result.stderr


def test_a_table_too_large_for_a_fit_points_to_training(table, monkeypatch):
    monkeypatch.setattr("gnnperf.adaptation.measurements.MOST_ROWS", 3)
    result = run("adapt", "--device", "2080ti", "--measurements", table)
    assert result.exit_code == 1 and "gnnperf train" in result.stderr
