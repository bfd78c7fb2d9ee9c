"""One process's part in a study: trials until the study has as many as were asked for, whoever ran them."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from optuna import Study
from optuna.storages import RetryHeartbeatStaleTrialCallback, fail_stale_trials
from optuna.trial import FrozenTrial, Trial, TrialState

from gnnperf.tuning.storage import lost_storage_in_one_line

FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
_POLL_S = 1.0


class StudyProgress(Protocol):
    """What a worker tells of itself."""

    def trial_started(self, trial: Trial) -> None:
        """A trial of this process begins."""

    def trial_done(self, study: Study, trial: FrozenTrial) -> None:
        """It is finished."""

    def trial_lost(self, number: int) -> None:
        """This process was silent for so long that its trial was given to another."""

    def waiting(self, running: int) -> None:
        """Only trials of other processes are left."""


class Stopped(Exception):
    """Ctrl-C: the trial is marked failed and queued again, the same command continues."""


def work(
    study: Study, objective: Callable[[Trial], float | tuple[float, ...]], trials: int, progress: StudyProgress
) -> None:
    """Run trials until ``trials`` of the study are complete or pruned.

    Trials that run in other processes count, so that together they do not run more than asked for (but for one a
    process, where they start at the same moment). The last processes wait for one another: a trial whose process dies
    is then still retried.

    Raises:
        Stopped: Ctrl-C.
        TuningError: the storage no longer answers.
    """
    worker = _Worker(study, objective, progress)
    with lost_storage_in_one_line(), _interrupts_restored():
        try:
            while True:
                states = [trial.state for trial in worker.current_trials()]
                finished = sum(state in FINISHED for state in states)
                running, waiting = states.count(TrialState.RUNNING), states.count(TrialState.WAITING)
                if finished >= trials:
                    return
                if waiting or finished + running < trials:
                    worker.run_one()
                else:
                    progress.waiting(running)
                    time.sleep(_POLL_S)
        except KeyboardInterrupt:
            worker.requeue()
            raise Stopped from None


class _Worker:
    """The trial that this process runs."""

    def __init__(self, study: Study, objective: Callable, progress: StudyProgress) -> None:
        self._study = study
        self._objective = objective
        self._progress = progress
        self._trial: Trial | None = None
        self._lost = False

    def current_trials(self) -> list[FrozenTrial]:
        """All trials, once those of dead processes are queued again."""
        fail_stale_trials(self._study)
        return self._study.get_trials(deepcopy=False)

    def run_one(self) -> None:
        self._lost = False
        try:
            self._study.optimize(self._run, n_trials=1, callbacks=[self._progress.trial_done])
        except Exception:
            if not self._lost:
                raise
            self._progress.trial_lost(self._trial.number)
        self._trial = None

    def _run(self, trial: Trial) -> float | tuple[float, ...]:
        self._trial = trial
        self._progress.trial_started(trial)
        try:
            return self._objective(trial)
        finally:
            self._lost = self._state(trial) != TrialState.RUNNING

    def _state(self, trial: Trial) -> TrialState:
        return self._study.get_trials(deepcopy=False)[trial.number].state

    def requeue(self) -> None:
        """Queue the interrupted trial again, which is marked failed."""
        if self._trial is None:
            return
        trial = self._study.get_trials(deepcopy=False)[self._trial.number]
        if trial.state == TrialState.RUNNING:  # interrupted before Optuna looked after it
            self._study.tell(trial.number, state=TrialState.FAIL)
        elif trial.state != TrialState.FAIL or self._lost:
            return
        RetryHeartbeatStaleTrialCallback()(self._study, trial)


@contextmanager
def _interrupts_restored() -> Iterator[None]:
    """Lightning ignores Ctrl-C from the first one on; whoever called may still want it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
