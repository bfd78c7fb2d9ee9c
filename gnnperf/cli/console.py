"""What every command shares: where text goes, and how an error becomes one line and an exit code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import typer
from rich import console as rich_console
from rich.segment import Segment
from rich.text import Text

from gnnperf.errors import GnnperfError

# Control characters but tab and newline, and overrides of the writing direction. All of them take no room in a line.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Console(rich_console.Console):
    """A console that prints names from a stranger's file without letting them steer the terminal."""

    def render(self, renderable, options=None) -> Iterable[Segment]:
        """Render as rich does, without unprintable characters; rich's own codes are not part of the text."""
        for segment in super().render(renderable, options):
            if not segment.control and _UNPRINTABLE.search(segment.text):
                segment = Segment(_UNPRINTABLE.sub("", segment.text), segment.style)
            yield segment


stdout = Console(highlight=False)
stderr = Console(stderr=True, highlight=False)

_EXTRAS = {"psutil": "measure"}  # what another extra than train brings

EXIT_FAILED = 1
EXIT_USAGE = 2


def print_error(message: str) -> None:
    """One line on standard error."""
    stderr.print(Text.assemble(("error: ", "bold red"), " ".join(message.split())), soft_wrap=True)


@contextmanager
def one_line_errors(exit_code: int = EXIT_FAILED) -> Iterator[None]:
    """Turn a :class:`GnnperfError`, a missing extra, a full disk or Ctrl-C into one line and an exit code."""
    try:
        yield
    except GnnperfError as error:
        print_error(str(error))
        raise typer.Exit(exit_code) from None
    except ModuleNotFoundError as error:
        if (error.name or "gnnperf").startswith("gnnperf"):
            raise  # a defect of ours, not an extra that was left out
        extra = _EXTRAS.get(error.name, "train")
        print_error(f"this command needs {error.name}, which predicting does not: pip install 'gnnperf[{extra}]'")
        raise typer.Exit(exit_code) from None
    except BrokenPipeError:
        raise  # who reads the output has had enough; typer ends the command
    except OSError as error:  # the disk is full, the folder is gone
        print_error(f"cannot write {error.filename or 'the output'}: {error.strerror or error}")
        raise typer.Exit(exit_code) from None
    except KeyboardInterrupt:
        stderr.print("interrupted")
        raise typer.Exit(130) from None
