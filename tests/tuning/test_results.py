import json

import optuna
import pandas as pd
import pytest
from optuna.samplers import RandomSampler
from optuna.trial import TrialState

from gnnperf.errors import TuningError
from gnnperf.training.config import TrainingConfig
from gnnperf.tuning.confirmation import Confirmed
from gnnperf.tuning.options import Aim
from gnnperf.tuning.results import write_results
from gnnperf.tuning.space import SPACE, suggest, values_of
from gnnperf.tuning.study import IDENTITY

TRIALS = 14
PRUNED, DIVERGED = 5, 6


def finished(config, aim=Aim.ACCURACY, trials=TRIALS) -> optuna.Study:
    """A study whose error is the learning rate in thousandths, and 100 for the configuration itself."""
    study = optuna.create_study(study_name="s", directions=["minimize"] * len(aim.figures), sampler=RandomSampler(0))
    study.set_user_attr(IDENTITY, {"data": "abc"})
    study.enqueue_trial(values_of(config))

    def objective(trial):
        rate = suggest(trial, config).optimisation.learning_rate
        error = 1000 * rate if trial.number else 100.0
        trial.set_user_attr("parameters", 1000 + trial.number)
        trial.set_user_attr("cpu_s", 30.0)
        trial.set_user_attr("mape", {"resnet": {"inference": error}})
        trial.set_user_attr("inference", error)
        if trial.number == PRUNED and len(aim.figures) == 1:
            trial.report(error, 0)
            raise optuna.TrialPruned
        if trial.number == DIVERGED:
            trial.set_user_attr("diverged", "no longer finite")
            raise optuna.TrialPruned
        return (error, 1000.0 + trial.number)[: len(aim.figures)]

    study.optimize(objective, n_trials=trials)
    study.add_trial(optuna.trial.create_trial(state=TrialState.FAIL))
    return study


@pytest.fixture
def study(config):
    return finished(config)


def best_number(study) -> int:
    complete = [trial for trial in study.trials if trial.state == TrialState.COMPLETE]
    return min(complete, key=lambda trial: trial.params["optimisation.learning_rate"] if trial.number else 1e9).number


def test_the_winner_is_a_whole_configuration_with_the_steps_and_rows_of_the_one_that_was_tuned(study, config, tmp_path):
    found = write_results(study, config, Aim.ACCURACY, tmp_path / "out", "s-tuned", [])
    best = study.trials[best_number(study)]
    won = TrainingConfig.from_yaml(tmp_path / "out" / "s-tuned.yaml")
    assert found["winner"]["trial"] == found["best"]["trial"] == best.number
    assert won.name == "s-tuned" and won.data == config.data and won.optimisation.steps == config.optimisation.steps
    assert won.network.width == best.params["network.width"]
    assert won.optimisation.learning_rate == pytest.approx(best.params["optimisation.learning_rate"], rel=0.005)
    assert found["configuration"]["values"] == [100.0]
    assert found["trials"] == {"running": 0, "complete": TRIALS - 2, "pruned": 2, "fail": 1, "waiting": 0}
    assert found["diverged"] == 1 and found["cpu_s"] == 30.0 * TRIALS
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == found


def test_the_error_depends_on_the_learning_rate_and_importances_say_so(config, tmp_path):
    study = finished(config, trials=60)
    found = write_results(study, config, Aim.ACCURACY, tmp_path, "s-tuned", [])
    assert next(iter(found["importances"])) == "optimisation.learning_rate"
    assert sum(found["importances"].values()) == pytest.approx(1)
    for name in ("history.png", "importance.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_every_trial_is_a_row(study, config, tmp_path):
    write_results(study, config, Aim.ACCURACY, tmp_path, "s-tuned", [])
    table = pd.read_csv(tmp_path / "trials.csv")
    assert list(table["trial"]) == list(range(TRIALS + 1))
    assert table["state"].value_counts().to_dict() == {"complete": TRIALS - 2, "pruned": 1, "diverged": 1, "fail": 1}
    assert set(SPACE) < set(table)
    row = table.iloc[3]
    assert row["mape"] == pytest.approx(1000 * row["optimisation.learning_rate"], rel=0.005)
    assert row["mape"] == row["inference"] == row["resnet_inference"] and row["parameters"] == 1003
    assert table.iloc[PRUNED]["reports"] == 1


def test_who_holds_under_other_seeds_wins(study, config, tmp_path):
    again = [Confirmed(2, 7.0, {1: 8.0, 2: 9.0}), Confirmed(best_number(study), 1.0, {1: 20.0, 2: 30.0})]
    found = write_results(study, config, Aim.ACCURACY, tmp_path, "s-tuned", again)
    assert found["winner"]["trial"] == 2 != found["best"]["trial"]
    assert TrainingConfig.from_yaml(tmp_path / "s-tuned.yaml").network.width == study.trials[2].params["network.width"]
    text = (tmp_path / "REPORT.md").read_text()
    assert "| 2 | 7.0 | 8.0 | 9.0 | 8.5 |" in text and "| winner | 2 |" in text


def test_two_figures_have_a_pareto_front(config, tmp_path):
    study = finished(config, Aim.ACCURACY_PARAMETERS)
    found = write_results(study, config, Aim.ACCURACY_PARAMETERS, tmp_path, "s-tuned", [])
    front = [trial["trial"] for trial in found["pareto"]]
    assert {0, best_number(study)} <= set(front) and len(front) < TRIALS
    text = (tmp_path / "REPORT.md").read_text()
    assert all(f"| {number} | " in text for number in front)
    assert found["winner"]["trial"] == best_number(study)


def test_without_a_complete_trial_there_is_no_winner(config, tmp_path):
    study = optuna.create_study()
    study.add_trial(optuna.trial.create_trial(state=TrialState.FAIL))
    with pytest.raises(TuningError, match="no trial is complete"):
        write_results(study, config, Aim.ACCURACY, tmp_path, "s-tuned", [])
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_one_line(study, config, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TuningError, match="cannot write to"):
        write_results(study, config, Aim.ACCURACY, tmp_path / "file", "s-tuned", [])
