"""The headline protocol runs on what ships with gnnperf."""

import json

import pytest
from typer.testing import CliRunner

from gnnperf.cli.main import app
from gnnperf.datasets.splits import HEADLINE_FAMILIES
from gnnperf.evaluation.metrics import summarise


def run(*arguments: str):
    return CliRunner().invoke(app, ["evaluate", *arguments])


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
        assert row["ape"] == pytest.approx(abs(row["predicted_ms"] / row["latency_ms"] - 1))


def test_summary_is_over_the_rows(headline):
    rows = headline["rows"]
    expected = summarise([row["predicted_ms"] for row in rows], [row["latency_ms"] for row in rows])
    assert headline["summary"]["rows"] == len(rows)
    assert headline["summary"]["mape"] == pytest.approx(expected.mape)


def test_one_phase_a_plot_and_every_row(tmp_path, headline):
    picture = tmp_path / "scatter.png"
    result = run("headline", "--phase", "training", "--rows", "--plot", str(picture))
    assert result.exit_code == 0, result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    training = [row for row in headline["rows"] if row["phase"] == "training"]
    assert result.stdout.count("training") >= len(training) > 0
    assert "inference" not in result.stdout


def test_a_plot_that_cannot_be_written_is_one_line(tmp_path):
    result = run("headline", "--phase", "backward", "--plot", str(tmp_path / "absent" / "scatter.png"))
    assert result.exit_code == 1
    assert "cannot write the plot" in result.stderr and "Traceback" not in result.output
