import json

import pytest
import typer
from typer.testing import CliRunner

from gnnperf.cli.devices import app
from gnnperf.devices import get_device, list_devices

root = typer.Typer()
root.add_typer(app, name="devices")


@pytest.fixture
def run():
    runner = CliRunner()
    return lambda *arguments: runner.invoke(root, ["devices", *map(str, arguments)])


def test_lists_every_device_on_a_line_of_its_own(run):
    result = run()
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [device.slug for device in list_devices()]
    row = next(line for line in lines if line.startswith("1080ti "))
    for text in ("GeForce GTX 1080 Ti", "Pascal", "28", "1582", "11.34", "484.4", "11", "2017"):
        assert text in row


def test_kind_and_json(run):
    listed = json.loads(run("--kind", "phone", "--json").stdout)
    assert listed and {device["kind"] for device in listed} == {"phone"}
    assert len(json.loads(run("--json").stdout)) == len(list_devices())
    assert run("--kind", "toaster").exit_code == 2


def test_show_prints_the_source(run):
    result = run("show", "GTX 1080 Ti")
    assert result.exit_code == 0
    assert "11.34 TFLOP/s" in result.stdout and "TechPowerUp GPU Database: GeForce GTX 1080 Ti" in result.stdout
    shown = json.loads(run("show", "1080ti", "--json").stdout)
    assert shown["peak_fp32_tflops"] == get_device("1080ti").peak_fp32_tflops
    assert shown["source"].startswith("TechPowerUp")


def test_show_of_an_unknown_device_is_one_line(run):
    result = run("show", "1080tii")
    assert result.exit_code == 1
    assert result.stderr == "error: unknown device '1080tii': did you mean '1080ti'? `gnnperf devices` lists all\n"
    assert result.stdout == ""


def test_template_can_be_shown_and_is_never_overwritten(run, tmp_path):
    path = tmp_path / "my_gpu.yaml"
    assert run("template", "-o", path).exit_code == 0
    assert json.loads(run("show", path, "--json").stdout)["sm_count"] == 28
    path.write_text("precious")
    result = run("template", "-o", path)
    assert result.exit_code == 1 and "exists already" in result.stderr
    assert path.read_text() == "precious"
    result = run("template", "-o", tmp_path / "no" / "folder.yaml")
    assert result.exit_code == 1 and "cannot write" in result.stderr


def test_derived_figures_are_shown(run, tmp_path):
    path = tmp_path / "faster.yaml"
    path.write_text("name: Faster\nbase: 1080ti\nclock_mhz: 3164\n")
    text = run("show", path).stdout
    assert "22.68 TFLOP/s" in text and "in proportion to cores * clock_mhz" in text


def test_options_of_the_list_are_refused_before_a_subcommand(run):
    result = run("--json", "show", "1080ti")
    assert result.exit_code == 2 and "behind" in result.stderr


@pytest.mark.parametrize("arguments", [(), ("show",), ("template",)])
def test_help_has_examples(run, arguments):
    result = run(*arguments, "--help")
    assert result.exit_code == 0 and "gnnperf devices" in result.stdout and "Example" in result.stdout
