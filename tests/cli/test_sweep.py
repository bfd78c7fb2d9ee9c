"""A sweep prints one object for each device, the same figures as predict gives, and draws them."""

import csv
import io
import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from gnnperf import zoo
from gnnperf.cli.main import app


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("sweep") / "squeezenet.onnx"
    path.write_bytes(zoo.build("squeezenet1_1", batch="N").SerializeToString())
    return path


@pytest.fixture(scope="module")
def points(model) -> list[dict]:
    result = run(
        "sweep", model, "--base", "1080ti", "--vary", "clock_mhz=1200:2000:5", "--vary", "bandwidth_gb_s=300:900:4",
        "--batch", 8, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_an_object_for_each_combination(points):
    assert len(points) == 20
    assert [point["bandwidth_gb_s"] for point in points[:4]] == [300, 500, 700, 900]
    assert {point["clock_mhz"] for point in points} == {1200, 1400, 1600, 1800, 2000}
    for point in points:
        assert point["low_ms"] < point["latency_ms"] < point["high_ms"] and point["roofline_ms"] > 0
        assert point["throughput_per_s"] == pytest.approx(8000 / point["latency_ms"])
        assert (point["model"], point["base"], point["batch"], point["phase"]) == (
            "squeezenet",
            "1080ti",
            8,
            "inference",
        )
    slowest, fastest = points[0], points[-1]
    assert fastest["latency_ms"] < slowest["latency_ms"]


def test_a_point_is_what_predict_says_of_the_same_device(points, model, tmp_path):
    device = tmp_path / "mine.yaml"
    device.write_text("name: mine\nbase: 1080ti\nclock_mhz: 1600\nbandwidth_gb_s: 700\n")
    (predicted,) = json.loads(run("predict", model, "--device", device, "--batch", 8, "--json").stdout)
    (point,) = [p for p in points if p["clock_mhz"] == 1600 and p["bandwidth_gb_s"] == 700]
    for name in ("latency_ms", "low_ms", "high_ms", "roofline_ms"):
        assert point[name] == pytest.approx(predicted[name], rel=1e-5)


def test_many_points_are_predicted_in_parts(model, points, monkeypatch):
    monkeypatch.setattr("gnnperf.sweep._OPERATORS_AT_ONCE", 1)
    result = run(
        "sweep", model, "--vary", "clock_mhz=1200:2000:5", "--vary", "bandwidth_gb_s=300:900:4", "-b", 8, "--json"
    )
    again = [point["latency_ms"] for point in json.loads(result.stdout)]
    assert again == pytest.approx([point["latency_ms"] for point in points], rel=1e-5)


def test_table_csv_and_training(model):
    result = run("sweep", model, "--vary", "sm_count=14:28:2", "--phase", "training")
    assert result.exit_code == 0 and "squeezenet from 1080ti, batch 1, training" in result.stdout
    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == ["sm_count", "14", "28"]
    rows = list(csv.DictReader(io.StringIO(run("sweep", model, "--vary", "sm_count=14:28:2", "--csv").stdout)))
    assert [row["sm_count"] for row in rows] == ["14", "28"] and float(rows[0]["latency_ms"]) > 0


@pytest.mark.parametrize("figures", [["clock_mhz=1200:2000:3"], ["clock_mhz=1200:2000:3", "cores=1000:4000:20"]])
def test_a_picture_of_one_figure_or_two(model, tmp_path, figures):
    picture = tmp_path / "sweep.png"
    vary = [part for figure in figures for part in ("--vary", figure)]
    assert run("sweep", model, *vary, "--plot", picture).exit_code == 0
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 5000


def test_figures_that_may_go_the_wrong_way_are_said(model):
    assert "l2_mb was learned from few devices" in run("sweep", model, "--vary", "l2_mb=2:4:2").stderr
    assert not run("sweep", model, "--vary", "clock_mhz=1200:2000:2").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--vary", "clock=1:2:3"], "'clock' is no figure of a device"),
        (["--vary", "clock_mhz=1200:2000:3", "--base", "abacus"], "unknown device 'abacus'"),
        (["--vary", "clock_mhz=1200:2000:3", "--predictor", "absent"], "absent"),
        (["--vary", "clock_mhz=1200:2000:3", "--plot", "absent/a.png"], "cannot write the plot"),
    ],
)
def test_what_cannot_be_done_is_one_line(model, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = run("sweep", model, *arguments)
    assert result.exit_code == 1 and message in result.stderr and result.stderr.count("\n") == 1


def test_three_figures_make_no_picture(model, tmp_path):
    vary = ["--vary", "clock_mhz=1:2:2", "--vary", "cores=1:2:2", "--vary", "l2_mb=1:2:2"]
    assert "--plot shows one figure or two, not 3" in run("sweep", model, *vary, "--plot", tmp_path / "a.png").stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_full_disk_behind_the_output_is_one_line(model, options):
    command = [sys.executable, "-m", "gnnperf", "sweep", str(model), "--vary", "clock_mhz=1000:2000:2", *options]
    with open("/dev/full", "w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr and "No space left" in result.stderr.splitlines()[0]
