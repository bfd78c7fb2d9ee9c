"""How far a study is, for the terminal."""

from __future__ import annotations

from optuna import Study
from optuna.trial import FrozenTrial, Trial, TrialState
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from gnnperf.tuning.results import trial_figures
from gnnperf.tuning.study import best_trial
from gnnperf.tuning.worker import FINISHED


class StudyBar:
    """A line a trial, with the best so far, and a bar over the study; lines alone where the output is no terminal.

    Args:
        console: where to.
        trials: that are asked for, in total.
        steps: of a trial, all folds together.
        confirms: whether the trials confirm others, so that the best of them is none to speak of.
    """

    def __init__(self, console: Console, trials: int, steps: int, *, confirms: bool = False) -> None:
        self._console = console
        self._trials = trials
        self._name = "confirmation" if confirms else "trial"
        self._confirms = confirms
        self._said_waiting = 0
        self._bar = Progress(
            TextColumn("{task.fields[what]}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[study]}", markup=False),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("", total=steps, what="", study="")
        self._fold, self._before = "", 0

    def __enter__(self) -> StudyBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def trial_started(self, trial: Trial) -> None:  # noqa: D102
        self._fold, self._before = "", 0
        trials = trial.study.get_trials(deepcopy=False)
        done = sum(other.state in FINISHED for other in trials)
        self._bar.reset(self._task, what=f"{self._name} {trial.number}", study=f"{done} of {self._trials} trials")

    def step(self, fold: str, step: int) -> None:
        """A training of the trial has done so many steps."""
        if fold != self._fold:
            self._fold, self._before = fold, self._bar.tasks[0].completed
        self._bar.update(self._task, completed=self._before + step)

    def trial_done(self, study: Study, trial: FrozenTrial) -> None:  # noqa: D102
        states = [other.state for other in study.get_trials(deepcopy=False)]
        done = sum(state in FINISHED for state in states)
        if trial.state == TrialState.FAIL:
            what = "failed"
        elif "diverged" in trial.user_attrs:
            what = "diverged"
        elif trial.state == TrialState.PRUNED:
            what = f"pruned at {trial.value:.1f} %"
        else:
            what = trial_figures(trial)
        best = None if self._confirms else best_trial(study)
        text = f"; best so far {best.values[0]:.1f} % by trial {best.number}" if best else ""
        self._say(f"{self._name} {trial.number}: {what}{text} ({done} of {self._trials})")

    def trial_lost(self, number: int) -> None:  # noqa: D102
        self._say(f"{self._name} {number}: this process was silent for so long that another one got it")

    def waiting(self, running: int) -> None:  # noqa: D102
        self._bar.update(self._task, what=f"waiting for trials of other processes: {running}")
        if running != self._said_waiting:
            self._said_waiting = running
            self._say(f"waiting for trials of other processes: {running}; Ctrl-C leaves them to themselves")

    def _say(self, text: str) -> None:
        self._bar.console.print(text, markup=False, soft_wrap=True)
