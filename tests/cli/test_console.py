"""Text from a stranger's file reaches the terminal as text only; what a user can mend is one line."""

import errno
import io

import pytest
import typer
from rich.table import Table
from rich.text import Text

from gnnperf.cli.console import Console, one_line_errors


def printed(renderable) -> str:
    output = io.StringIO()
    Console(file=output, width=80, force_terminal=True, color_system="standard").print(renderable)
    return output.getvalue()


@pytest.mark.parametrize("character", ["\x1b[2J", "\x07", "\r", "\x9b2J", "\u202e", "\x7f"])
def test_control_characters_are_left_out(character):
    table = Table(box=None, show_header=False)
    table.add_row(Text(f"a{character} b"))
    for renderable in (Text(f"a{character} b"), table):
        output = printed(renderable)
        assert output.strip() == f"a{character[1:]} b"


def test_styles_lines_and_other_languages_stay():
    assert printed(Text("層\tb\n", style="bold")).startswith("\x1b[1m層")
    assert printed(Text("a\nb")) == "a\nb\n"


def test_a_missing_extra_is_one_line_that_says_what_to_install(capsys):
    with pytest.raises(typer.Exit) as stopped, one_line_errors():
        raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
    assert stopped.value.exit_code == 1
    printed = capsys.readouterr().err
    assert "needs pandas" in printed and "gnnperf[train]" in printed and printed.count("\n") == 1


def test_a_missing_module_of_our_own_is_a_defect_and_stays_one():
    with pytest.raises(ModuleNotFoundError), one_line_errors():
        raise ModuleNotFoundError("No module named 'gnnperf.absent'", name="gnnperf.absent")


def test_a_full_disk_is_one_line_and_a_closed_pipe_is_left_to_typer(capsys):
    with pytest.raises(typer.Exit) as stopped, one_line_errors():
        raise OSError(errno.ENOSPC, "No space left on device")
    assert stopped.value.exit_code == 1
    assert capsys.readouterr().err == "error: cannot write the output: No space left on device\n"
    with pytest.raises(BrokenPipeError), one_line_errors():
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")
