"""How far a run of folds is, for the terminal."""

from __future__ import annotations

import time

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gnnperf.evaluation.metrics import summarise

_PLAIN_LINES = 20
_SPEED_OVER_S = 600  # folds begin and end; only a long look back gives a steady guess of the time left


class FoldsBar:
    """One bar over all folds, and a line for each that is finished; plain lines where the output is no terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._steps: dict[str, int] = {}
        self._bar: Progress | None = None

    def start(self, names: list[str], steps: int) -> None:
        """Show the bar."""
        self._waiting, self._per_fold = dict.fromkeys(names, 0), steps
        self._printed = 0
        self._begun = time.monotonic()
        self._first: dict[str, int] = {}
        self._bar = Progress(
            TextColumn("training folds"),
            BarColumn(bar_width=20),
            TaskProgressColumn(),
            TextColumn("{task.fields[running]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            speed_estimate_period=_SPEED_OVER_S,
        )
        if names:
            self._bar.start()
        self._task = self._bar.add_task("", total=max(1, len(names) * steps), running="")

    def step(self, name: str, step: int) -> None:
        """Move the bar."""
        self._first.setdefault(name, step)
        self._waiting[name] = step
        total = len(self._waiting) * self._per_fold
        completed = sum(self._waiting.values())
        running = [fold for fold, count in self._waiting.items() if fold in self._first and count < self._per_fold]
        self._bar.update(self._task, completed=completed, running=", ".join(running))
        part = completed * _PLAIN_LINES // total
        if self._bar.disable and part > self._printed:
            self._printed = part
            self._console.print(
                f"{100 * completed // total} % of the steps done, {self._left(total, completed)} left; "
                f"training {', '.join(running) or 'none'}",
                markup=False,
                soft_wrap=True,
            )

    def _left(self, total: int, completed: int) -> str:
        now = max(1, completed - sum(self._first.values()))  # what an earlier run did says nothing of the speed
        minutes = (time.monotonic() - self._begun) / now * (total - completed) / 60
        return f"{minutes:.0f} min" if minutes >= 1 else "less than a minute"

    def done(self, name: str, rows: pd.DataFrame) -> None:
        """Say what a fold came to."""
        earlier = "" if name in self._waiting else ", by an earlier run"
        mape = summarise(rows["stack_only_ms"], rows["latency_ms"]).mape
        self._console.print(f"{name}: MAPE {mape:.1%} on {len(rows):,} rows{earlier}", markup=False, highlight=False)

    def stop(self) -> None:
        """Take the bar away."""
        self._bar.stop()
