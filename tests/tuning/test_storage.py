"""Every wrong or unreachable storage is one clear line."""

import importlib.util
import json
import sqlite3

import pytest

from gnnperf.errors import TuningError
from gnnperf.tuning.storage import HeartbeatDatabase, HeartbeatJournal, open_storage


@pytest.mark.parametrize(
    ("name", "kind"),
    [("deep/er/a.sqlite3", HeartbeatDatabase), ("b.journal", HeartbeatJournal)],
)
def test_files_by_their_suffix(tmp_path, name, kind):
    storage = open_storage(str(tmp_path / name), 20)
    assert isinstance(storage, kind) and (tmp_path / name).exists()
    assert storage.get_heartbeat_interval() == 20


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
