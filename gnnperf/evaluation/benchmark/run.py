"""Every method on every row; what was predicted before is read from a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from gnnperf.datasets.dataset import Dataset
from gnnperf.errors import GnnperfError
from gnnperf.evaluation.benchmark.fits import BenchmarkProgress, Fit, attempt, run_fits
from gnnperf.evaluation.benchmark.method import Method
from gnnperf.evaluation.benchmark.prediction_cache import PredictionCache
from gnnperf.evaluation.benchmark.result import Benchmark


@dataclass(frozen=True)
class _Task:
    """One fit of a method: the folds that it is for, and their rows."""

    method: Method
    identity: str | None
    folds: tuple[str, ...]
    rows: pd.DataFrame
    key: str


def run_benchmark(
    methods: Sequence[Method],
    truth: Dataset,
    cache: PredictionCache,
    *,
    jobs: int = 1,
    progress: BenchmarkProgress | None = None,
) -> Benchmark:
    """Predict every row by every method.

    Args:
        methods: what to compare.
        truth: of :func:`gnnperf.evaluation.benchmark.truths.truth_rows`.
        cache: for what is fitted.
        jobs: processes that fit.
        progress: told how far the run is.

    Raises:
        DataError: the cache cannot be written.
    """
    scored = truth.frame.assign(**{method.name: np.nan for method in methods})
    missing: dict[tuple[str, str], str] = {}

    def done(task: _Task, predicted: np.ndarray | GnnperfError) -> None:
        if isinstance(predicted, GnnperfError):
            missing.update({(task.method.name, fold): str(predicted) for fold in task.folds})
        else:
            scored.loc[task.rows.index, task.method.name] = predicted

    waiting, fits = [], []
    for task in (task for method in methods for task in _tasks(method, truth.frame)):
        fit = Fit(task.key, partial(task.method.predict, task.folds[0], task.rows, truth.graphs))
        if task.identity is None:
            done(task, attempt(fit))
        elif (known := cache.find(task.key, task.identity, task.rows)) is not None:
            done(task, known)
        else:
            waiting.append(task)
            fits.append(fit)
    for position, predicted in run_fits(fits, jobs, progress):
        task = waiting[position]
        done(task, predicted)
        if not isinstance(predicted, GnnperfError):
            cache.keep(task.key, task.identity, task.rows, predicted)
    return Benchmark(scored, tuple(methods), missing)


def _tasks(method: Method, frame: pd.DataFrame) -> list[_Task]:
    """A method's fits: folds that see the same rows share one."""
    folds: dict[str, list[str]] = {}
    for fold in sorted(frame["fold"].unique()):
        folds.setdefault(method.identity(fold) or fold, []).append(fold)
    tasks = []
    for names in folds.values():
        key = method.name if len(folds) == 1 else f"{method.name}-{'-'.join(names)}"
        tasks.append(_Task(method, method.identity(names[0]), tuple(names), frame[frame["fold"].isin(names)], key))
    return tasks
