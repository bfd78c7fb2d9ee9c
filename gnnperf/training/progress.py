"""How far training is, for the terminal."""

from __future__ import annotations

import math

import lightning
from lightning.pytorch.callbacks import Callback
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_SMOOTHING = 0.95  # a single step's figures jump with what it drew
_PLAIN_LINES = 20


class TrainingBar(Callback):
    """A bar with smoothed loss and MAPE and the time left; twenty plain lines where the output is no terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._smoothed: dict[str, float] = {}

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:  # noqa: D102
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._bar.start()
        self._task = self._bar.add_task("", total=trainer.max_steps, completed=trainer.global_step, figures="")

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: object) -> None:  # noqa: D102
        for name, value in trainer.callback_metrics.items():
            value = float(value)
            if math.isfinite(value):  # a step without whole models has no MAPE
                old = self._smoothed.get(name, value)
                self._smoothed[name] = _SMOOTHING * old + (1 - _SMOOTHING) * value
        step = trainer.global_step
        self._bar.update(self._task, completed=step, figures=self._figures())
        if self._bar.disable and step % max(1, trainer.max_steps // _PLAIN_LINES) == 0:
            self._console.print(f"step {step} of {trainer.max_steps}: {self._figures()}")

    def _figures(self) -> str:
        formats = {"loss": "loss {:.3f}", "mape": "mape {:.1f} %"}
        return "  ".join(text.format(self._smoothed[name]) for name, text in formats.items() if name in self._smoothed)

    def on_train_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:  # noqa: D102
        self._bar.stop()

    def on_exception(self, *_: object) -> None:  # noqa: D102
        self._bar.stop()
