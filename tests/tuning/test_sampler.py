import optuna
from optuna.storages import InMemoryStorage

from gnnperf.tuning.sampler import NumberedTPE

TRIALS = 18  # more than are drawn at random


def objective(trial):
    x = trial.suggest_float("x", -1, 1)
    return (x - 0.3) ** 2 + (trial.suggest_categorical("c", ("a", "b")) == "a")


def drawn(parts: list[int], seed: int = 0) -> list[dict]:
    """Parameters of a study that is run by one process after another."""
    storage = InMemoryStorage()
    for number in parts:
        study = optuna.create_study(study_name="s", storage=storage, sampler=NumberedTPE(seed), load_if_exists=True)
        study.optimize(objective, n_trials=number)
    return [trial.params for trial in study.trials]


def test_an_interrupted_study_draws_what_an_uninterrupted_one_draws():
    whole = drawn([TRIALS])
    assert drawn([5, 1, 9, 3]) == whole
    assert len({tuple(params.values()) for params in whole}) == TRIALS
    assert drawn([TRIALS], seed=1000) != whole


def test_trials_of_two_processes_at_once_differ():
    storage = InMemoryStorage()
    studies = [
        optuna.create_study(study_name="s", storage=storage, sampler=NumberedTPE(0), load_if_exists=True)
        for _ in range(2)
    ]
    asked = [study.ask() for study in studies]
    assert asked[0].suggest_float("x", -1, 1) != asked[1].suggest_float("x", -1, 1)


def test_it_learns():
    params = drawn([TRIALS])
    assert [p["c"] for p in params[12:]].count("b") >= 5
    best = min(abs(p["x"] - 0.3) for p in params[12:] if p["c"] == "b")
    assert best < 0.1
