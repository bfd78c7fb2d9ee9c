"""Every wrong or unreachable storage is one clear line."""

import importlib.util
import json
import sqlite3
from types import SimpleNamespace

import optuna
import pytest
from optuna.storages import RDBStorage

from gnnperf.errors import TuningError
from gnnperf.tuning.journal import HeartbeatJournalStorage
from gnnperf.tuning.storage import open_storage


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.db", RDBStorage), ("deep/er/b.sqlite3", RDBStorage), ("c.journal", HeartbeatJournalStorage)],
)
def test_files_by_their_suffix(tmp_path, name, kind):
    storage = open_storage(str(tmp_path / name), 20)
    assert isinstance(storage, kind) and (tmp_path / name).exists()
    assert storage.get_heartbeat_interval() == 20


def test_a_url(tmp_path):
    open_storage(f"sqlite:///{tmp_path / 'study'}", 20)
    assert (tmp_path / "study").exists()


def refused(where) -> str:
    with pytest.raises(TuningError) as error:
        open_storage(str(where), 20)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_is_no_storage(tmp_path):
    assert "give a SQLite file (.db" in refused(tmp_path / "study.txt")
    assert "a oracle database is not among" in refused("oracle://host/x")
    assert "no valid URL" in refused("postgresql://host:port:5/x")


def test_a_password_is_not_shown():
    assert "secret" not in refused("oracle://user:secret@host/x")


@pytest.mark.skipif(importlib.util.find_spec("MySQLdb") is not None, reason="the driver is installed")
def test_a_driver_that_is_missing_is_named():
    message = refused("mysql://user:secret@localhost/studies")
    assert message == "--storage mysql://user:***@localhost/studies needs MySQLdb: pip install mysqlclient"


def test_a_folder_that_cannot_be_made_or_is_missing(tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot make the folder" in refused(tmp_path / "file" / "study.db")
    assert "unable to open database file" in refused(f"sqlite:///{tmp_path}/absent/study.db")
    (tmp_path / "folder.journal").mkdir()
    assert "cannot open the journal" in refused(tmp_path / "folder.journal")


def test_a_file_of_something_else(tmp_path):
    (tmp_path / "a.db").write_text("not a database at all, but long enough to be read as the head of one" * 20)
    assert "not a database" in refused(tmp_path / "a.db")
    (tmp_path / "b.journal").write_text("not a journal\n")
    assert "no journal of a study, or damaged" in refused(tmp_path / "b.journal")
    (tmp_path / "c.journal").write_text(json.dumps({"op_code": 4}) + "\n")
    assert "no journal of a study, or damaged" in refused(tmp_path / "c.journal")


def test_a_database_of_another_version(tmp_path):
    open_storage(str(tmp_path / "a.db"), 20)
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("update alembic_version set version_num = 'v0.9.0.a'")
    assert "cannot open --storage" in refused(tmp_path / "a.db")


@pytest.fixture
def clock(monkeypatch):
    """What the heartbeat takes for the time: ``clock.seconds``."""
    from gnnperf.tuning import journal

    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(journal.time, "monotonic", lambda: now.seconds)
    return now


def states_at(study, clock, seconds) -> list[str]:
    clock.seconds = seconds
    optuna.storages.fail_stale_trials(study)
    return [trial.state.name for trial in study.trials]


def test_a_journal_s_trial_is_stale_once_another_process_has_seen_it_silent(tmp_path, clock):
    ours, theirs = (open_storage(str(tmp_path / "a.journal"), 10) for _ in range(2))
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


def test_a_trial_that_kills_its_process_again_and_again_is_given_up(tmp_path, clock):
    study = optuna.create_study(storage=open_storage(str(tmp_path / "a.journal"), 1))
    study.enqueue_trial({"x": 0.5})
    for start in (10, 20, 30):
        study.ask()
        states_at(study, clock, start)
        states = states_at(study, clock, start + 5)
    assert states == ["FAIL"] * 3
