"""How far a benchmark is, for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class BenchmarkBar:
    """One bar over all pairs of a method and a fold; nothing where the output is no terminal."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console, disable=not console.is_terminal, transient=True)

    def start(self, tasks: int) -> None:
        """So many fits and predictions are to come."""
        self._bar.start()
        self._task = self._bar.add_task("", total=tasks, completed=-1)

    def step(self, task: str) -> None:
        """One of them begins."""
        self._bar.update(self._task, advance=1, description=task)

    def stop(self) -> None:
        """No more is to come."""
        self._bar.stop()
