import optuna
import pytest

from gnnperf.tuning.confirmation import CANDIDATE, candidates, confirmed, enqueue
from gnnperf.tuning.options import TRIAL_SEED

ERRORS = {0: 9.0, 1: 4.0, 2: 6.0, 3: 5.0}
OWN = {"x": 0.5}


@pytest.fixture
def study():
    study = optuna.create_study()
    study.enqueue_trial(OWN)

    def objective(trial):
        trial.suggest_float("x", 0, 1)
        if trial.number == 4:
            raise optuna.TrialPruned
        return ERRORS[trial.number]

    study.optimize(objective, n_trials=5)
    return study


def test_candidates_are_the_best_and_the_configuration_s_own(study):
    assert [trial.number for trial in candidates(study, OWN, 2)] == [1, 3, 0]
    assert [trial.number for trial in candidates(study, OWN, 4)] == [1, 3, 2, 0]
    assert [trial.number for trial in candidates(study, {"x": 0.7}, 1)] == [1]


def run(confirmation, errors):
    def objective(trial):
        trial.suggest_float("x", 0, 1)
        error = errors[trial.user_attrs[CANDIDATE], trial.user_attrs[TRIAL_SEED]]
        if error is None:
            raise optuna.TrialPruned  # it diverged
        return error

    waiting = [trial for trial in confirmation.trials if trial.state.name == "WAITING"]
    confirmation.optimize(objective, n_trials=len(waiting))


def test_every_candidate_is_queued_under_every_seed_once(study):
    confirmation = optuna.create_study()
    chosen = candidates(study, OWN, 1)
    assert enqueue(confirmation, chosen, [1, 2]) == 4 == enqueue(confirmation, chosen, [1, 2])
    assert len(confirmation.trials) == 4
    fixed = [trial.system_attrs["fixed_params"] for trial in confirmation.trials]
    assert fixed == [study.trials[1].params, OWN] * 2
    run(confirmation, {(1, 1): 8.0, (1, 2): 9.0, (0, 1): 7.0, (0, 2): 8.5})
    found = confirmed(confirmation, chosen)
    assert [(one.trial, one.mape, one.others, one.mean) for one in found] == [
        (0, 9.0, {1: 7.0, 2: 8.5}, 7.75),
        (1, 4.0, {1: 8.0, 2: 9.0}, 8.5),
    ]


def test_a_study_that_went_on_has_other_candidates_and_keeps_what_was_trained(study):
    confirmation = optuna.create_study()
    enqueue(confirmation, candidates(study, {}, 1), [1])
    run(confirmation, {(1, 1): 8.0})
    chosen = candidates(study, {}, 2)
    assert enqueue(confirmation, chosen, [1]) == 2
    run(confirmation, {(3, 1): 7.0})
    assert [one.trial for one in confirmed(confirmation, chosen)] == [3, 1]


def test_a_candidate_that_diverges_under_another_seed_does_not_win(study):
    confirmation = optuna.create_study()
    chosen = candidates(study, {}, 2)
    enqueue(confirmation, chosen, [1, 2])
    run(confirmation, {(1, 1): 1.0, (1, 2): None, (3, 1): 7.0, (3, 2): 8.0})
    assert [one.trial for one in confirmed(confirmation, chosen)] == [3]
