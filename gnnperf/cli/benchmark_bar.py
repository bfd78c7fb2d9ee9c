"""How far a benchmark is, for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class BenchmarkBar:
    """One bar over all fits; a line for each finished one where the output is no terminal."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn())
        self._console = console
        self._bar = Progress(*columns, console=console, disable=not console.is_terminal, transient=True)

    def start(self, names: list[str]) -> None:
        """These are to be done; what earlier runs did is not among them."""
        self._bar.start()
        self._task = self._bar.add_task("fitting and predicting", total=len(names))

    def done(self, name: str) -> None:
        """One of them is finished."""
        self._bar.update(self._task, advance=1, description=f"done: {name}")
        if self._bar.disable:
            self._console.print(f"done: {name}", markup=False, soft_wrap=True)

    def stop(self) -> None:
        """No more is to come."""
        self._bar.stop()
        self._bar.remove_task(self._task)
