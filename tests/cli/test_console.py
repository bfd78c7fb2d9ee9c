"""Text from a stranger's file reaches the terminal as text only."""

import io

import pytest
from rich.table import Table
from rich.text import Text

from gnnperf.cli.console import Console


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
