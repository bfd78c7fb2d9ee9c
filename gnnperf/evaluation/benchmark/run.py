"""Every method on every row; what was predicted before is read from a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from gnnperf.datasets.dataset import Dataset
from gnnperf.errors import GnnperfError
from gnnperf.evaluation.benchmark.method import Method
from gnnperf.evaluation.benchmark.prediction_cache import PredictionCache
from gnnperf.evaluation.benchmark.result import Benchmark


class BenchmarkProgress(Protocol):
    """What a run tells of itself."""

    def start(self, tasks: int) -> None:
        """So many fits and predictions are to come."""

    def step(self, task: str) -> None:
        """One of them begins."""

    def stop(self) -> None:
        """No more is to come."""


def run_benchmark(
    methods: Sequence[Method], truth: Dataset, cache: PredictionCache, progress: BenchmarkProgress | None = None
) -> Benchmark:
    """Predict every row by every method.

    Args:
        methods: what to compare.
        truth: of :func:`gnnperf.evaluation.benchmark.truths.truth_rows`.
        cache: for what is fitted.
        progress: told how far the run is.

    Raises:
        DataError: the cache cannot be written.
    """
    folds = [(fold, rows) for fold, rows in truth.frame.groupby("fold")]
    scored, missing = truth.frame.copy(), {}
    if progress:
        progress.start(len(methods) * len(folds))
    try:
        for method in methods:
            scored[method.name] = np.nan
            for fold, rows in folds:
                if progress:
                    progress.step(f"{method.name}, {fold}")
                name, identity = f"{method.name}-{fold}", method.identity(fold, rows)
                predicted = cache.find(name, identity) if identity else None
                if predicted is None:
                    try:
                        predicted = method.predict(fold, rows, truth.graphs)
                    except GnnperfError as error:
                        missing[method.name, fold] = str(error)
                        continue
                    if identity:
                        cache.keep(name, identity, rows, predicted)
                scored.loc[rows.index, method.name] = predicted
    finally:
        if progress:
            progress.stop()
    return Benchmark(scored, tuple(methods), missing)
