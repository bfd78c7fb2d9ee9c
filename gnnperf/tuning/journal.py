"""A journal file that notices when the process of a trial is gone, as Optuna's databases do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from optuna import Study
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import JournalStorage
from optuna.storages._heartbeat import BaseHeartbeat  # not public, but all that fail_stale_trials asks for
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

_BEATS = "heartbeat"


class HeartbeatJournalStorage(JournalStorage, BaseHeartbeat):
    """Optuna's journal storage with the heartbeat that it lacks.

    The worker of a running trial writes a number that counts up; a trial whose number another process has seen stand
    still for the grace period is stale. Clocks of different machines are never compared.

    Args:
        path: of the journal; made where it does not exist.
        interval_s: between two beats.
        grace_s: of silence, after which a process counts as gone.
        on_stale: told study and trial once the trial is marked failed.

    Raises:
        OSError: the file cannot be read or written.
        ValueError: it is no journal; by what is damaged also KeyError or TypeError.
    """

    def __init__(
        self, path: str, interval_s: int, grace_s: int, on_stale: Callable[[Study, FrozenTrial], None]
    ) -> None:
        with open(path, "ab+") as file:  # Optuna passes over a single line that is no record, and stumbles later
            file.seek(0)
            if line := file.readline():
                json.loads(line)
        super().__init__(JournalFileBackend(path))
        self._interval_s = interval_s
        self._grace_s = grace_s
        self._on_stale = on_stale
        self._beats: dict[int, int] = {}
        self._seen: dict[int, tuple[int | None, float]] = {}  # of each running trial: its number, and since when

    def record_heartbeat(self, trial_id: int) -> None:  # noqa: D102
        self._beats[trial_id] = self._beats.get(trial_id, 0) + 1
        try:
            self.set_trial_system_attr(trial_id, _BEATS, self._beats[trial_id])
        except UpdateFinishedTrialError:
            pass  # this process was silent for so long that the trial was given to another

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        now = time.monotonic()
        running = self.get_all_trials(study_id, deepcopy=False, states=(TrialState.RUNNING,))
        seen = {}
        for trial in running:
            beat = trial.system_attrs.get(_BEATS)
            before = self._seen.get(trial._trial_id)
            seen[trial._trial_id] = before if before and before[0] == beat else (beat, now)
        self._seen = seen
        return [trial_id for trial_id, (_, since) in seen.items() if now - since > self._grace_s]

    def get_heartbeat_interval(self) -> int | None:  # noqa: D102
        return self._interval_s

    def get_heartbeat_stale_trial_callback(self) -> Callable[[Study, FrozenTrial], None] | None:  # noqa: D102
        return self._on_stale
