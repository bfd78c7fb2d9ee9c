"""``gnnperf data``: bring the shipped measurements into a table and look at it."""

import json

import pytest
from typer.testing import CliRunner

from gnnperf.cli.data import app


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_import_stats_and_check_in_a_folder_named_like_markup(run, tmp_path):
    folder = tmp_path / "a[" / "]b"  # the path reads "a[/]b"
    imported = run("import", "published", "--to", folder, "--processes", 1)
    assert imported.exit_code == 0, imported.output
    stats = json.loads(run("stats", "--to", folder, "--json").stdout)
    assert stats["rows"] == sum(count["rows"] for count in stats["counts"]) > 0
    for command in ("stats", "check"):
        result = run(command, "--to", folder)
        assert result.exit_code == 0 and "a[/]b" in result.stdout.replace("\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stats", "--to", "nowhere"], "no measurements in nowhere"),
        (["import", "nope"], "unknown source 'nope'"),
        (["import", "help"], "give the folder"),
    ],
)
def test_errors_are_one_line(run, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 1 and message in result.stderr and "Traceback" not in result.stderr


def test_list_names_every_source(run):
    sources = json.loads(run("list", "--json").stdout)
    assert "published" in {source["name"] for source in sources}
    assert all(source["name"] in run("list").stdout for source in sources)
