import optuna
import pytest
from optuna.pruners import HyperbandPruner, MedianPruner, NopPruner
from optuna.storages import InMemoryStorage

from gnnperf.errors import TuningError
from gnnperf.tuning import study as studies
from gnnperf.tuning.folds import validation_folds
from gnnperf.tuning.options import Aim, PrunerName
from gnnperf.tuning.study import IDENTITY, best_trial, make_pruner, open_study, own_trial, study_identity

IDENTITY_OF_IT = {"data": "abc", "steps": "250"}


def opened(storage, identity=IDENTITY_OF_IT, aim=Aim.ACCURACY):
    return open_study(storage, "s", aim, 0, NopPruner(), identity, lambda study: study.enqueue_trial({"x": 0.5}))


def test_the_first_process_queues_trial_0_and_the_others_join():
    storage = InMemoryStorage()
    first, second = opened(storage), opened(storage)
    assert [trial.system_attrs["fixed_params"] for trial in second.trials] == [{"x": 0.5}]
    assert second.user_attrs[IDENTITY] == IDENTITY_OF_IT and first._study_id == second._study_id


def test_two_figures_make_a_study_of_two_directions():
    assert len(opened(InMemoryStorage(), aim=Aim.ACCURACY_PARAMETERS).directions) == 2


def test_another_study_of_that_name_is_refused_with_what_differs():
    storage = InMemoryStorage()
    opened(storage)
    with pytest.raises(TuningError, match="the study s was made with another steps: give what"):
        opened(storage, IDENTITY_OF_IT | {"steps": "300"})
    with pytest.raises(TuningError, match="with another data, device"):
        opened(storage, {"data": "other", "steps": "250", "device": "v100"})


def test_a_study_that_something_else_made_is_refused(monkeypatch):
    monkeypatch.setattr(studies, "_MADE_WITHIN_S", 0)
    storage = InMemoryStorage()
    optuna.create_study(study_name="s", storage=storage)
    with pytest.raises(TuningError, match="not made by `gnnperf tune`"):
        opened(storage)


def test_the_identity_tells_what_would_make_trials_incomparable(tiny_dataset, config):
    def identity(config=config, frame=tiny_dataset.frame, device="1080ti", aim=Aim.ACCURACY, weight=0.5, seed=0):
        return study_identity(config, validation_folds(frame, config, device), device, aim, weight, seed)

    base = identity()
    assert base == identity()
    longer = config.model_copy(update={"optimisation": config.optimisation.model_copy(update={"steps": 5})})
    slower = tiny_dataset.frame.assign(latency_ms=tiny_dataset.frame["latency_ms"] * 1.01)

    def differing(other):
        return {key for key in base if base[key] != other[key]}

    assert differing(identity(longer)) == {"steps", "configuration"}
    assert differing(identity(frame=slower)) == {"data"}
    assert "device" in differing(identity(device="v100-pcie-32gb"))
    assert differing(identity(aim=Aim.ACCURACY_PARAMETERS)) == {"objective"}
    assert differing(identity(weight=0.7)) == {"weight of inference"}
    assert differing(identity(seed=1)) == {"seed"}


def test_pruners():
    assert isinstance(make_pruner(PrunerName.MEDIAN, 3), MedianPruner)
    assert isinstance(make_pruner(PrunerName.NONE, 3), NopPruner)
    pruner = make_pruner(PrunerName.HYPERBAND, 3)
    assert isinstance(pruner, HyperbandPruner)
    study = optuna.create_study(pruner=pruner)

    def objective(trial):
        for step in range(6):
            trial.report(trial.number, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return trial.number

    study.optimize(objective, n_trials=12)
    assert {trial.state.name for trial in study.trials} == {"COMPLETE", "PRUNED"}


def test_the_best_and_the_configuration_s_own_trial():
    study = opened(InMemoryStorage())
    assert best_trial(study) is None and own_trial(study, {"x": 0.5}) is None
    study.optimize(lambda trial: trial.suggest_float("x", 0, 0.5) * (1 if trial.number else 2), n_trials=3)
    assert own_trial(study, {"x": 0.5}).number == 0 and own_trial(study, {"x": 0.7}) is None
    assert best_trial(study).number == study.best_trial.number != 0
