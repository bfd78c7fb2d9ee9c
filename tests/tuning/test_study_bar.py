import io

import optuna
import pytest
from rich.console import Console

from gnnperf.tuning.progress import StudyBar
from gnnperf.tuning.worker import work


def objective(bar):
    def run(trial):
        for fold in ("resnet", "inception"):
            for step in (1, 2):
                bar.step(fold, step)
        trial.set_user_attr("parameters", 1234)
        trial.set_user_attr("inference", 12.5)
        if trial.number == 1:
            trial.report(31.25, 0)
            raise optuna.TrialPruned
        if trial.number == 2:
            trial.set_user_attr("diverged", "")
            raise optuna.TrialPruned
        return 10.0 + trial.number

    return run


@pytest.mark.parametrize("terminal", [False, True])
def test_a_line_a_trial_with_the_best_so_far(terminal):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120, highlight=False)
    with StudyBar(console, 4, 4) as bar:
        work(optuna.create_study(), objective(bar), 4, bar)
    text = console.file.getvalue()
    for line in (
        "trial 0: 10.0 % (inference 12.5; 1,234 parameters); best so far 10.0 % by trial 0 (1 of 4)",
        "trial 1: pruned at 31.2 %; best so far 10.0 % by trial 0 (2 of 4)",
        "trial 2: diverged; best so far 10.0 % by trial 0 (3 of 4)",
        "trial 3: 13.0 %",
    ):
        assert line in text
    assert terminal or len(text.splitlines()) == 4


def test_waiting_is_said_once_and_a_lost_trial_too():
    console = Console(file=io.StringIO(), width=120)
    with StudyBar(console, 4, 4) as bar:
        bar.waiting(2)
        bar.waiting(2)
        bar.waiting(1)
        bar.trial_lost(7)
    lines = console.file.getvalue().splitlines()
    assert [line.split(";")[0] for line in lines[:2]] == [
        "waiting for trials of other processes: 2",
        "waiting for trials of other processes: 1",
    ]
    assert lines[2].startswith("trial 7: this process was silent")


def test_confirmations_have_no_best():
    console = Console(file=io.StringIO(), width=120)
    with StudyBar(console, 1, 4, confirms=True) as bar:
        work(optuna.create_study(), objective(bar), 1, bar)
    assert console.file.getvalue().startswith("confirmation 0: 10.0 %") and "best" not in console.file.getvalue()
