"""Where a study is kept, so that any number of processes can work on it: a database, or a journal file."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from optuna.exceptions import OptunaError, StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, SQLAlchemyError

from gnnperf.errors import GnnperfError, TuningError
from gnnperf.tuning.heartbeat import CountedHeartbeat

_SQLITE_SUFFIXES = (".db", ".sqlite", ".sqlite3")
_JOURNAL_SUFFIXES = (".journal", ".log")
_SERVERS = ("postgresql", "mysql", "mariadb")
_CONNECT_S = 10
_LOCK_S = 60  # SQLite has one writer at a time
_ATTEMPTS, _AGAIN_S = 20, 0.25  # to open a database that another process is just making


class HeartbeatDatabase(CountedHeartbeat, RDBStorage):
    """Optuna's database storage.

    Args:
        url: of SQLAlchemy.
        interval_s: between two beats.
        connect: arguments of the driver.
    """

    def __init__(self, url: str, interval_s: int, connect: dict[str, int]) -> None:
        RDBStorage.__init__(self, url, engine_kwargs={"connect_args": connect})
        CountedHeartbeat.__init__(self, interval_s)


class HeartbeatJournal(CountedHeartbeat, JournalStorage):
    """Optuna's journal storage.

    Args:
        path: made where it does not exist.
        interval_s: between two beats.

    Raises:
        OSError: the file cannot be read or written.
        ValueError: it is no journal; by what is damaged also KeyError or TypeError.
    """

    def __init__(self, path: Path, interval_s: int) -> None:
        with path.open("ab+") as file:  # Optuna passes over a single line that is no record, and stumbles later
            file.seek(0)
            if line := file.readline():
                json.loads(line)
        JournalStorage.__init__(self, JournalFileBackend(str(path)))
        CountedHeartbeat.__init__(self, interval_s)


def open_storage(where: str, heartbeat_s: int) -> BaseStorage:
    """Open what ``--storage`` names; see :class:`CountedHeartbeat` for what becomes of trials whose process is gone.

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
            return HeartbeatJournal(path, heartbeat_s)
        except OSError as error:
            raise TuningError(f"cannot open the journal {path}: {error.strerror or error}") from None
        except Exception as error:  # by what is damaged: ValueError, KeyError, TypeError ...
            raise TuningError(f"{path} is no journal of a study, or damaged ({type(error).__name__})") from None
    raise TuningError(
        f"--storage {where}: give a SQLite file ({', '.join(_SQLITE_SUFFIXES)}), a journal "
        f"({', '.join(_JOURNAL_SUFFIXES)}) or a URL (sqlite:///, {'://, '.join(_SERVERS)}://)"
    )


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
            return HeartbeatDatabase(text, heartbeat_s, connect)
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


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@contextmanager
def lost_storage_in_one_line() -> Iterator[None]:
    """Turn whatever follows from a storage that no longer answers into a :class:`TuningError`."""
    try:
        yield
    except GnnperfError:
        raise
    except Exception as error:
        behind = error
        while behind is not None:  # Optuna ends in other errors where it cannot store how a trial ended
            if isinstance(behind, (StorageInternalError, SQLAlchemyError, json.JSONDecodeError)):
                reason = _first_line(behind.__cause__ or behind)
                raise TuningError(
                    f"the storage of the study no longer answers ({reason}); run the same command again to continue"
                ) from None
            behind = behind.__cause__ or behind.__context__
        raise
