"""Where a study is kept, so that any number of processes can work on it: a database, or a journal file."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from optuna.exceptions import OptunaError, StorageInternalError
from optuna.storages import BaseStorage, RDBStorage, RetryHeartbeatStaleTrialCallback
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, SQLAlchemyError

from gnnperf.errors import TuningError
from gnnperf.tuning.journal import HeartbeatJournalStorage

_SQLITE_SUFFIXES = (".db", ".sqlite", ".sqlite3")
_JOURNAL_SUFFIXES = (".journal", ".log")
_SERVERS = ("postgresql", "mysql", "mariadb")
_CONNECT_S = 10
_LOCK_S = 60  # SQLite has one writer at a time
_ATTEMPTS, _AGAIN_S = 20, 0.25  # to open a database that another process is just making
_RETRIES = 2  # of a trial whose process died: it may be the trial that kills it
GRACE_BEATS = 3


def open_storage(where: str, heartbeat_s: int) -> BaseStorage:
    """Open what ``--storage`` names.

    A trial whose process is silent for three heartbeats is marked failed and queued again, at most twice.

    Args:
        where: ``study.db`` or another SQLite file, ``study.journal``, or a URL (``sqlite:///``, ``postgresql://``,
            ``mysql://``).
        heartbeat_s: seconds between two signs of life of a worker.

    Raises:
        TuningError: no such kind of storage, its driver is not installed, its server does not answer, or the file is
            damaged or cannot be written.
    """
    if "://" in where:
        return _open_database(where, heartbeat_s)
    path = Path(where)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TuningError(f"cannot make the folder {path.parent}: {error.strerror}") from None
    if path.suffix in _SQLITE_SUFFIXES:
        return _open_database(f"sqlite:///{path}", heartbeat_s)
    if path.suffix in _JOURNAL_SUFFIXES:
        try:
            return HeartbeatJournalStorage(
                str(path), heartbeat_s, GRACE_BEATS * heartbeat_s, RetryHeartbeatStaleTrialCallback(_RETRIES)
            )
        except OSError as error:
            raise TuningError(f"cannot open the journal {path}: {error.strerror or error}") from None
        except Exception as error:  # by what is damaged: ValueError, KeyError, TypeError ...
            raise TuningError(f"{path} is no journal of a study, or damaged ({type(error).__name__})") from None
    raise TuningError(
        f"--storage {where}: give a SQLite file ({', '.join(_SQLITE_SUFFIXES)}), a journal "
        f"({', '.join(_JOURNAL_SUFFIXES)}) or a URL (sqlite:///, {'://, '.join(_SERVERS)}://)"
    )


class _Database(RDBStorage):
    """A database that may be out of reach for a while: the beats of the heart's thread are lost, the thread is not."""

    def record_heartbeat(self, trial_id: int) -> None:
        with suppress(StorageInternalError):
            super().record_heartbeat(trial_id)


def _open_database(text: str, heartbeat_s: int) -> BaseStorage:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise TuningError("--storage is no valid URL: DIALECT://USER:PASSWORD@HOST:PORT/DATABASE") from None
    kind, shown = url.get_backend_name(), url.render_as_string(hide_password=True)
    if kind not in ("sqlite", *_SERVERS):
        raise TuningError(f"--storage {shown}: a {kind} database is not among sqlite, {', '.join(_SERVERS)}")
    connect = {"timeout": _LOCK_S} if kind == "sqlite" else {"connect_timeout": _CONNECT_S}
    for attempt in range(_ATTEMPTS):
        try:
            return _Database(
                text,
                engine_kwargs={"connect_args": connect},
                heartbeat_interval=heartbeat_s,
                grace_period=GRACE_BEATS * heartbeat_s,
                heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(_RETRIES),
            )
        except ImportError as error:
            module = getattr(error.__cause__, "name", None) or "its database driver"
            raise TuningError(f"--storage {shown} needs {module}: pip install {_package(module)}") from None
        except (SQLAlchemyError, OptunaError, RuntimeError) as error:
            # Two processes that find an empty database both make its tables; the second of them finds them at last.
            if attempt == _ATTEMPTS - 1 or not ("already exists" in str(error) or isinstance(error, IntegrityError)):
                raise TuningError(f"cannot open --storage {shown}: {_first_line(error)}") from None
            time.sleep(_AGAIN_S)


def _package(module: str) -> str:
    return {"MySQLdb": "mysqlclient", "psycopg2": "psycopg2-binary", "psycopg": "'psycopg[binary]'"}.get(module, module)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
