"""A trial whose process is gone is run again."""

from types import SimpleNamespace

import optuna
import pytest

from gnnperf.tuning.storage import open_storage


@pytest.fixture
def clock(monkeypatch):
    """What the heartbeat takes for the time: ``clock.seconds``."""
    from gnnperf.tuning import heartbeat

    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(heartbeat.time, "monotonic", lambda: now.seconds)
    return now


def states_at(study, clock, seconds) -> list[str]:
    clock.seconds = seconds
    optuna.storages.fail_stale_trials(study)
    return [trial.state.name for trial in study.trials]


@pytest.mark.parametrize("name", ["a.db", "a.journal"])
def test_a_trial_is_stale_once_another_process_has_seen_it_silent(tmp_path, clock, name):
    ours, theirs = (open_storage(str(tmp_path / name), 10) for _ in range(2))
    trial = optuna.create_study(study_name="s", storage=ours).ask()
    trial.suggest_float("x", 0, 1)
    other = optuna.load_study(study_name="s", storage=theirs)
    for seconds in (0, 20, 40, 60):  # it beats
        ours.record_heartbeat(trial._trial_id)
        assert states_at(other, clock, seconds) == ["RUNNING"]
    assert states_at(other, clock, 80) == ["RUNNING"]
    assert states_at(other, clock, 91) == ["FAIL", "WAITING"]
    assert other.trials[1].params == other.trials[0].params
    ours.record_heartbeat(trial._trial_id)  # it was only asleep: no error in the thread of the heart


@pytest.mark.parametrize("name", ["a.db", "a.journal"])
def test_a_process_that_dies_before_its_first_beat_is_noticed(tmp_path, clock, name):
    study = optuna.create_study(storage=open_storage(str(tmp_path / name), 10))
    study.ask()
    assert states_at(study, clock, 0) == states_at(study, clock, 29) == ["RUNNING"]
    assert states_at(study, clock, 31) == ["FAIL", "WAITING"]


def test_a_storage_that_is_out_of_reach_does_not_stop_the_heart(tmp_path):
    path = tmp_path / "a.db"
    storage = open_storage(str(path), 10)
    trial = optuna.create_study(storage=storage).ask()
    content = path.read_bytes()
    path.write_bytes(b"")
    storage.record_heartbeat(trial._trial_id)
    path.write_bytes(content)
    storage.record_heartbeat(trial._trial_id)
    assert storage.get_trial(trial._trial_id).system_attrs["heartbeat"] == 2


def test_a_trial_that_kills_its_process_again_and_again_is_given_up(tmp_path, clock):
    study = optuna.create_study(storage=open_storage(str(tmp_path / "a.journal"), 1))
    study.enqueue_trial({"x": 0.5})
    for start in (10, 20, 30):
        study.ask()
        states_at(study, clock, start)
        states = states_at(study, clock, start + 5)
    assert states == ["FAIL"] * 3
