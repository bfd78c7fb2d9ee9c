import math

import numpy as np
import optuna
import pytest
import torch
from optuna.pruners import NopPruner, ThresholdPruner
from optuna.trial import TrialState

from gnnperf.errors import DataError
from gnnperf.training.module import LatencyModule
from gnnperf.tuning.folds import validation_folds
from gnnperf.tuning.objective import Objective
from gnnperf.tuning.options import REPORTS_PER_FOLD, TRIAL_SEED, Aim
from gnnperf.tuning.space import values_of


@pytest.fixture
def folds(tiny_dataset, config, small_folds):
    return validation_folds(tiny_dataset.frame, config, "1080ti")[:2]


def run(objective, config, pruner=None, aim=Aim.ACCURACY, **attributes):
    study = optuna.create_study(directions=["minimize"] * len(aim.figures), pruner=pruner or NopPruner())
    study.enqueue_trial(values_of(config), user_attrs=attributes)
    study.optimize(objective, n_trials=1)
    return study.trials[0]


def test_a_trial_reports_twice_a_fold_and_ends_with_the_mean_over_families(tiny_dataset, config, folds):
    steps = []
    trial = run(Objective(config, tiny_dataset, folds, on_step=lambda *step: steps.append(step)), config)
    mape = trial.user_attrs["mape"]
    means = [sum(mape[family][phase] for family in mape) / 2 for phase in ("inference", "training")]
    assert set(mape) == {"densenet", "resnet"}
    assert trial.value == pytest.approx(sum(means) / 2)
    assert [trial.user_attrs["inference"], trial.user_attrs["training"]] == pytest.approx(means)
    reports = trial.intermediate_values
    assert sorted(reports) == list(range(2 * REPORTS_PER_FOLD))
    assert reports[1] == pytest.approx(sum(mape["densenet"].values()) / 2) and reports[3] == trial.value
    assert reports[0] != reports[1]
    assert steps == [(name, step) for name in ("densenet", "resnet") for step in (1, 2, 3, 4)]
    assert trial.user_attrs["parameters"] > 1000 and trial.user_attrs["cpu_s"] >= 0


def test_the_same_values_and_seed_give_the_same_error_and_another_seed_another(tiny_dataset, config, folds):
    objective = Objective(config, tiny_dataset, folds[:1])
    first = run(objective, config)
    torch.manual_seed(99)  # what was drawn before does not matter
    second = run(objective, config)
    other = run(objective, config, **{TRIAL_SEED: 1})
    assert first.value == second.value != other.value


def test_the_weight_of_inference(tiny_dataset, config, folds):
    trial = run(Objective(config, tiny_dataset, folds[:1], inference_weight=1.0), config)
    assert trial.value == pytest.approx(trial.user_attrs["mape"]["densenet"]["inference"])


def test_a_weight_that_leaves_nothing_to_score_is_refused(tiny_dataset, config, folds):
    fold = folds[0]
    inference = type(fold)(fold.name, fold.held_out_families, fold.train, fold.test[fold.test["phase"] == "inference"])
    with pytest.raises(DataError, match="no family has training rows to tune by"):
        Objective(config, tiny_dataset, [inference], inference_weight=0.0)


def test_a_bad_trial_ends_in_the_middle_of_its_first_training(tiny_dataset, config, folds):
    steps = []
    objective = Objective(config, tiny_dataset, folds, on_step=lambda *step: steps.append(step))
    trial = run(objective, config, ThresholdPruner(upper=0.0))
    assert trial.state == TrialState.PRUNED and list(trial.intermediate_values) == [0]
    assert steps == [("densenet", 1), ("densenet", 2)]


@pytest.mark.parametrize("aim", [Aim.ACCURACY, Aim.ACCURACY_PARAMETERS])
def test_a_training_that_diverges_is_pruned_and_says_so(tiny_dataset, config, folds, aim, monkeypatch):
    original = LatencyModule.training_step
    monkeypatch.setattr(LatencyModule, "training_step", lambda *arguments: original(*arguments) * math.nan)
    trial = run(Objective(config, tiny_dataset, folds, aim), config, aim=aim)
    assert trial.state == TrialState.PRUNED and "no longer finite" in trial.user_attrs["diverged"]


def test_predictions_that_are_no_numbers_count_as_diverged(tiny_dataset, config, folds, monkeypatch):
    from gnnperf.tuning.scoring import ValidationRows

    monkeypatch.setattr(ValidationRows, "predict", lambda rows, _: np.full(len(rows), math.inf))
    trial = run(Objective(config, tiny_dataset, folds), config)
    assert "no longer finite" in trial.user_attrs["diverged"] and not trial.intermediate_values


def test_two_figures_are_minimised_without_pruning(tiny_dataset, config, folds):
    aim = Aim.ACCURACY_PARAMETERS
    trial = run(Objective(config, tiny_dataset, folds[:1], aim), config, ThresholdPruner(upper=0.0), aim)
    assert trial.state == TrialState.COMPLETE and not trial.intermediate_values
    assert trial.values[1] == trial.user_attrs["parameters"]
    aim = Aim.ACCURACY_PREDICT_TIME
    trial = run(Objective(config, tiny_dataset, folds[:1], aim), config, aim=aim)
    assert trial.values[1] == trial.user_attrs["predict_cpu_ms"] > 0
