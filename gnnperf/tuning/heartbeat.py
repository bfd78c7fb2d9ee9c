"""Noticing that the process of a trial is gone, whatever the study is kept in."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from optuna import Study
from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
from optuna.storages import RetryHeartbeatStaleTrialCallback
from optuna.storages._heartbeat import BaseHeartbeat  # not public, but all that fail_stale_trials asks for
from optuna.trial import FrozenTrial, TrialState

GRACE_BEATS = 3
_RETRIES = 2  # of a trial whose process died: it may be the trial that kills it
_BEATS = "heartbeat"


class CountedHeartbeat(BaseHeartbeat):
    """Makes Optuna's heartbeat of any storage, to be inherited from before the storage.

    The worker of a running trial writes a number that counts up; a trial whose number another process has seen stand
    still for three beats is marked failed and queued again, at most twice. Unlike the heartbeat of Optuna's databases
    it compares no clocks, works for journals, and notices a process that died before its first beat.

    Args:
        interval_s: between two beats.
    """

    def __init__(self, interval_s: int) -> None:
        self._interval_s = interval_s
        self._own_beats: dict[int, int] = {}
        self._seen: dict[int, tuple[int | None, float]] = {}  # of each running trial: its number, and since when

    def record_heartbeat(self, trial_id: int) -> None:  # noqa: D102
        self._own_beats[trial_id] = self._own_beats.get(trial_id, 0) + 1
        # The trial was given to another process, or the storage is out of reach: for the worker to notice, while the
        # heart goes on.
        with suppress(UpdateFinishedTrialError, StorageInternalError, OSError):
            self.set_trial_system_attr(trial_id, _BEATS, self._own_beats[trial_id])

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        now = time.monotonic()
        seen = {}
        for trial in self.get_all_trials(study_id, deepcopy=False, states=(TrialState.RUNNING,)):
            beats = trial.system_attrs.get(_BEATS)
            before = self._seen.get(trial._trial_id)
            seen[trial._trial_id] = before if before and before[0] == beats else (beats, now)
        self._seen = seen
        return [trial_id for trial_id, (_, since) in seen.items() if now - since > GRACE_BEATS * self._interval_s]

    def get_heartbeat_interval(self) -> int | None:  # noqa: D102
        return self._interval_s

    def get_heartbeat_stale_trial_callback(self) -> Callable[[Study, FrozenTrial], None] | None:  # noqa: D102
        return RetryHeartbeatStaleTrialCallback(_RETRIES)
