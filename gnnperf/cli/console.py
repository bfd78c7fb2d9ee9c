"""What every command shares: where text goes, and how an error becomes one line and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.text import Text

from gnnperf.errors import GnnperfError

stdout = Console(highlight=False)
stderr = Console(stderr=True, highlight=False)

EXIT_FAILED = 1
EXIT_USAGE = 2


def print_error(message: str) -> None:
    """One line on standard error."""
    stderr.print(Text.assemble(("error: ", "bold red"), " ".join(message.split())), soft_wrap=True)


@contextmanager
def one_line_errors(exit_code: int = EXIT_FAILED) -> Iterator[None]:
    """Turn a :class:`GnnperfError` (or Ctrl-C) into one line and an exit code instead of a traceback."""
    try:
        yield
    except GnnperfError as error:
        print_error(str(error))
        raise typer.Exit(exit_code) from None
    except KeyboardInterrupt:
        stderr.print("interrupted")
        raise typer.Exit(130) from None
