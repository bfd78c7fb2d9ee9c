"""Train and score folds, several at a time; what is finished is never done again.

A fold's folder holds what `gnnperf train` writes, ``fold.json`` with the identity of configuration and rows, and, once
it is finished, ``rows.csv``.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import lightning
import pandas as pd
from lightning.pytorch.callbacks import Callback

from gnnperf import __version__
from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.schema import concatenate
from gnnperf.errors import DataError, TrainingError
from gnnperf.evaluation.protocols.folds import Fold
from gnnperf.evaluation.scoring import ROW_COLUMNS, TEXT_COLUMNS, score_rows
from gnnperf.files import write_whole
from gnnperf.predictor import Predictor
from gnnperf.training.checkpoint import Interrupted
from gnnperf.training.config import TrainingConfig
from gnnperf.training.fit import fit
from gnnperf.training.split import Split

FOLD_FILE = "fold.json"
ROWS_FILE = "rows.csv"
_POLL_S = 0.2


class FoldsProgress(Protocol):
    """What a run tells of itself."""

    def start(self, names: list[str], steps: int) -> None:
        """Folds that are still to be trained, of ``steps`` each."""

    def step(self, name: str, step: int) -> None:
        """A fold has done so many steps."""

    def done(self, name: str, rows: pd.DataFrame) -> None:
        """A fold is finished, now or by an earlier run; its scored rows."""

    def stop(self) -> None:
        """No more is to come."""


def run_folds(
    config: TrainingConfig,
    dataset: Dataset,
    folds: list[Fold],
    folder: Path,
    *,
    jobs: int = 1,
    progress: FoldsProgress | None = None,
) -> pd.DataFrame:
    """Train each fold and score its rows; folds that ``folder`` has already are read from there.

    Args:
        config: of every training.
        dataset: where the graphs of all rows are.
        folds: what is trained on and scored.
        folder: one folder a fold goes into it.
        jobs: processes; each uses one core.
        progress: told how far the run is.

    Returns:
        Scored rows of all folds, in their order; columns :data:`gnnperf.evaluation.scoring.ROW_COLUMNS`.

    Raises:
        TrainingError: the folder holds folds of another run, cannot be written, a training failed, or a process died.
        DataError: a finished fold's table is damaged.
        Interrupted: Ctrl-C; every fold that was being trained has a checkpoint.
    """
    identities = {fold.name: fold_identity(config, fold) for fold in folds}
    finished = {}
    for fold in folds:
        if _belongs(folder / fold.name, identities[fold.name]):
            finished[fold.name] = read_rows(folder / fold.name / ROWS_FILE)
    waiting = [fold for fold in folds if fold.name not in finished]
    if progress:
        steps = max(fold.config(config).optimisation.total_steps for fold in folds)
        progress.start([fold.name for fold in waiting], steps)
        for name, rows in finished.items():
            progress.done(name, rows)

    def done(name: str) -> None:
        finished[name] = read_rows(folder / name / ROWS_FILE)
        if progress:
            progress.done(name, finished[name])

    step = progress.step if progress else lambda name, step: None
    try:
        if jobs == 1 or len(waiting) == 1:
            for fold in waiting:
                _run_fold(config, dataset, fold, folder, identities[fold.name], step)
                done(fold.name)
        elif waiting:
            _run_in_processes(config, dataset, waiting, folder, identities, jobs, step, done)
    finally:
        if progress:
            progress.stop()
    return pd.concat([finished[fold.name] for fold in folds], ignore_index=True)


def fold_identity(config: TrainingConfig, fold: Fold) -> str:
    """Digest of everything that decides a fold's figures: version, configuration, rows trained on and scored."""
    digest = hashlib.sha256(f"{__version__} {fold.config(config).model_dump_json()}".encode())
    for frame in (fold.train, fold.test):
        digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return digest.hexdigest()


def _belongs(folder: Path, identity: str) -> bool:
    """Whether a fold's folder holds its finished rows."""
    try:
        found = json.loads((folder / FOLD_FILE).read_text(encoding="utf-8"))["identity"]
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError, KeyError, TypeError):
        found = None
    if found != identity:
        raise TrainingError(
            f"{folder} belongs to another configuration, seed, data or version; "
            "delete it to start again, or choose another --output"
        )
    return (folder / ROWS_FILE).exists()


def read_rows(path: Path) -> pd.DataFrame:
    """A table of scored rows that :func:`run_folds` wrote.

    Raises:
        DataError: the file cannot be read, or is no such table.
    """
    types = {name: str if name in TEXT_COLUMNS else float for name in ROW_COLUMNS} | {"batch": int}
    numbers = {name: [""] for name, kind in types.items() if kind is float}
    try:
        rows = pd.read_csv(path, dtype=types, keep_default_na=False, na_values=numbers, float_precision="round_trip")
        return rows[list(ROW_COLUMNS)]
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path} is no table of scored rows, or damaged ({reason}); delete it to score again") from None


def _run_fold(
    config: TrainingConfig,
    dataset: Dataset,
    fold: Fold,
    folder: Path,
    identity: str,
    step: Callable[[str, int], None],
    *callbacks: Callback,
) -> None:
    folder = folder / fold.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / FOLD_FILE, json.dumps({"identity": identity}).encode())
        split = Split(fold.train, fold.test, fold.test.iloc[:0])
        fit(fold.config(config), dataset, folder, split=split, callbacks=(_Steps(fold.name, step), *callbacks))
        rows = score_rows(fold.name, fold.test, fold.train, dataset, Predictor.load(folder), in_space=fold.in_space)
        write_whole(folder / ROWS_FILE, rows.to_csv(index=False).encode())
    except OSError as error:
        raise TrainingError(f"cannot write to {folder}: {error.strerror or error}") from None


class _Steps(Callback):
    """Reports about a hundred steps of a training, whatever their number."""

    def __init__(self, name: str, step: Callable[[str, int], None]) -> None:
        self._name, self._step = name, step

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        self._step(self._name, trainer.global_step)

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: object) -> None:
        if trainer.global_step % max(1, trainer.max_steps // 100) == 0:
            self._step(self._name, trainer.global_step)


def _run_in_processes(
    config: TrainingConfig,
    dataset: Dataset,
    folds: list[Fold],
    folder: Path,
    identities: dict[str, str],
    jobs: int,
    step: Callable[[str, int], None],
    done: Callable[[str], None],
) -> None:
    # Started anew, not forked: a fork of a process whose libraries run threads can hang.
    context = multiprocessing.get_context("spawn")
    steps, stop = context.Queue(), context.Event()
    # What a process is started with has to be small: starting it would wait until it has read that.
    pool = ProcessPoolExecutor(min(jobs, len(folds)), context, _start_worker, (steps, stop))
    # The processes need no rows but those of their folds, and read the graphs from the folder where there is one.
    graphs = Dataset(dataset.folder, concatenate([]), None if dataset.folder else dataset.graphs)
    with _interrupts_ignored():
        futures: dict[Future, str] = {
            pool.submit(_work, config, graphs, fold, folder, identities[fold.name]): fold.name for fold in folds
        }
    try:
        while futures:
            finished, _ = wait(futures, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            with suppress(queue.Empty):
                while True:
                    step(*steps.get_nowait())
            for future in finished:
                name = futures.pop(future)
                future.result()
                done(name)
    except BrokenProcessPool:
        raise TrainingError(
            "a process of the evaluation was killed, perhaps for want of memory; what is finished is kept: "
            "run the same command again, with --jobs 1"
        ) from None
    except KeyboardInterrupt:
        raise Interrupted("stopped; finished folds are kept and the others have checkpoints") from None
    finally:
        # Also after an error in one fold: the others end at their next step, with a checkpoint.
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Processes that are started meanwhile ignore Ctrl-C, which a terminal sends to all of them.

    While a network is trained in one, its checkpoint reacts to it.
    """
    if threading.current_thread() is not threading.main_thread():  # Python delivers signals there alone
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


class _Worker:
    """What a process keeps from one fold to the next."""

    steps: multiprocessing.Queue
    stop: threading.Event


def _start_worker(steps: multiprocessing.Queue, stop: threading.Event) -> None:
    _Worker.steps, _Worker.stop = steps, stop


def _work(config: TrainingConfig, dataset: Dataset, fold: Fold, folder: Path, identity: str) -> None:
    if not _Worker.stop.is_set():
        _run_fold(config, dataset, fold, folder, identity, lambda *step: _Worker.steps.put(step), _StopWhenAsked())


class _StopWhenAsked(Callback):
    """Ends a training like Ctrl-C, with a checkpoint, when the process that started it wants to stop."""

    def on_train_batch_end(self, *_: object) -> None:
        if _Worker.stop.is_set():
            signal.raise_signal(signal.SIGINT)
