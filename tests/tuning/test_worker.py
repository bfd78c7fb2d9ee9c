"""Processes that share a study, one of which is killed; Ctrl-C; a process that was asleep.

A server's database is tried where GNNPERF_TEST_STORAGE names one, such as postgresql://postgres@127.0.0.1/empty.
"""

import os
import signal
import subprocess
import sys

import optuna
import pytest
from optuna.pruners import NopPruner
from optuna.storages import InMemoryStorage, RetryHeartbeatStaleTrialCallback
from optuna.trial import TrialState

from gnnperf.errors import TuningError
from gnnperf.tuning.options import Aim
from gnnperf.tuning.storage import open_storage
from gnnperf.tuning.study import open_study
from gnnperf.tuning.worker import Stopped, work

TRIALS = 12
PROCESS = """
import os, sys, time
from optuna.pruners import NopPruner
from gnnperf.tuning.options import Aim
from gnnperf.tuning.storage import open_storage
from gnnperf.tuning.study import open_study
from gnnperf.tuning.worker import work

where, trials, hangs_in = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

class Silent:
    def trial_started(self, trial): pass
    def trial_done(self, study, trial): pass
    def trial_lost(self, number): pass
    def waiting(self, running): pass

mine = 0

def objective(trial):
    global mine
    mine += 1
    x = trial.suggest_float("x", -1, 1)
    trial.set_user_attr("process", os.getpid())
    if mine == hangs_in:
        print("hangs in", trial.number, flush=True)
        time.sleep(600)
    time.sleep(0.3)
    return x * x

study = open_study(open_storage(where, 1), "s", Aim.ACCURACY, 0, NopPruner(), {"a": "b"},
                   lambda study: study.enqueue_trial({"x": 0.5}))
work(study, objective, trials, Silent())
"""


class Progress:
    def __init__(self):
        self.started, self.done, self.lost, self.waits = [], [], [], 0

    def trial_started(self, trial):
        self.started.append(trial.number)

    def trial_done(self, study, trial):
        self.done.append(trial.number)

    def trial_lost(self, number):
        self.lost.append(number)

    def waiting(self, running):
        self.waits += 1


@pytest.fixture(params=["study.db", "study.journal", "server"])
def where(request, tmp_path):
    if request.param != "server":
        return str(tmp_path / request.param)
    if not (url := os.environ.get("GNNPERF_TEST_STORAGE")):
        pytest.skip("GNNPERF_TEST_STORAGE names no database to fill")
    return url


def test_two_processes_share_a_study_and_the_trial_of_a_killed_one_is_run_again(where):
    command = [sys.executable, "-W", "ignore", "-c", PROCESS, where, str(TRIALS)]
    doomed = subprocess.Popen([*command, "3"], stdout=subprocess.PIPE, text=True)
    survivor = subprocess.Popen([*command, "0"])
    try:
        killed = int(doomed.stdout.readline().removeprefix("hangs in"))
        doomed.send_signal(signal.SIGKILL)
        assert survivor.wait(timeout=120) == 0
    finally:
        for process in (doomed, survivor):
            process.kill()
            process.wait()

    trials = optuna.load_study(study_name="s", storage=open_storage(where, 1)).trials
    assert [trial.number for trial in trials if trial.state == TrialState.FAIL] == [killed]
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    assert len(complete) == TRIALS == len(trials) - 1
    assert {trial.user_attrs["process"] for trial in complete} == {doomed.pid, survivor.pid}
    (again,) = [trial for trial in complete if RetryHeartbeatStaleTrialCallback.retried_trial_number(trial) is not None]
    assert again.system_attrs["failed_trial"] == killed and again.params == trials[killed].params
    assert again.user_attrs["process"] == survivor.pid
    assert [trial.params["x"] for trial in trials].count(0.5) == 1 + (killed == 0)
    others = [trial.params["x"] for trial in trials if trial is not again]
    assert len(set(others)) == len(others)


def quadratic(trial):
    return trial.suggest_float("x", -1, 1) ** 2


def test_a_study_is_continued_up_to_a_number_of_trials_in_total():
    study = optuna.create_study()
    for total, begun in ((3, [0, 1, 2]), (5, [3, 4]), (5, []), (2, [])):
        progress = Progress()
        work(study, quadratic, total, progress)
        assert progress.started == progress.done == begun


def test_pruned_trials_count_and_failed_ones_do_not():
    def objective(trial):
        if trial.number == 1:
            raise optuna.TrialPruned
        return quadratic(trial)

    study = optuna.create_study()
    failed = optuna.trial.create_trial(state=TrialState.FAIL)
    study.add_trial(failed)
    work(study, objective, 3, Progress())
    assert [trial.state.name for trial in study.trials] == ["FAIL", "PRUNED", "COMPLETE", "COMPLETE"]


def test_ctrl_c_marks_the_trial_and_queues_it_again():
    def interrupted(trial):
        value = quadratic(trial)
        if trial.number == 1:
            signal.raise_signal(signal.SIGINT)
        return value

    handler = signal.getsignal(signal.SIGINT)
    study = optuna.create_study()
    with pytest.raises(Stopped):
        work(study, interrupted, 3, Progress())
    assert signal.getsignal(signal.SIGINT) is handler
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "FAIL", "WAITING"]
    progress = Progress()
    work(study, quadratic, 3, progress)
    assert progress.started == [2, 3]
    assert study.trials[2].params == study.trials[1].params and study.trials[3].params != study.trials[1].params


def test_ctrl_c_while_waiting_for_others_leaves_their_trials_alone(monkeypatch):
    study = optuna.create_study()
    elsewhere = study.ask()

    class Impatient(Progress):
        def waiting(self, running):
            assert running == 1
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Stopped):
        work(study, quadratic, 1, Impatient())
    study.tell(elsewhere, 1.0)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"]


def test_a_trial_that_was_given_to_another_process_is_let_go():
    storage = InMemoryStorage()
    study = optuna.create_study(study_name="s", storage=storage)

    def asleep(trial):
        value = quadratic(trial)
        if trial.number == 0:  # for so long that another process thinks this one dead
            study.tell(trial.number, state=TrialState.FAIL)
            RetryHeartbeatStaleTrialCallback()(study, study.trials[0])
        return value

    progress = Progress()
    work(study, asleep, 2, progress)
    assert progress.lost == [0]
    assert [trial.state.name for trial in study.trials] == ["FAIL", "COMPLETE", "COMPLETE"]


def test_an_error_of_the_objective_is_not_hidden():
    def broken(trial):
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        work(optuna.create_study(), broken, 1, Progress())


def test_a_storage_that_is_gone_is_one_line(tmp_path):
    path = tmp_path / "study.db"
    study = open_study(open_storage(str(path), 20), "s", Aim.ACCURACY, 0, NopPruner(), {}, lambda study: None)

    def objective(trial):
        for file in tmp_path.iterdir():
            file.write_bytes(b"")
        return quadratic(trial)

    with pytest.raises(TuningError, match="the storage of the study no longer answers") as error:
        work(study, objective, 2, Progress())
    assert "\n" not in str(error.value)
