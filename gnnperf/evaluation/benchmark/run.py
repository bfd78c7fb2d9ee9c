"""Every method on every row; what was predicted before is read from a table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd

from gnnperf.datasets.dataset import Dataset
from gnnperf.errors import DataError, GnnperfError
from gnnperf.evaluation.benchmark.method import Method
from gnnperf.evaluation.benchmark.result import Benchmark
from gnnperf.files import write_whole


class BenchmarkProgress(Protocol):
    """What a run tells of itself."""

    def start(self, tasks: int) -> None:
        """So many pairs of a method and a fold are to come."""

    def step(self, method: str, fold: str) -> None:
        """One of them begins."""

    def stop(self) -> None:
        """No more is to come."""


def run_benchmark(
    methods: Sequence[Method], truth: Dataset, cache: Path, progress: BenchmarkProgress | None = None
) -> Benchmark:
    """Predict every row by every method.

    Args:
        methods: what to compare.
        truth: of :func:`gnnperf.evaluation.benchmark.truths.truth_rows`.
        cache: folder for the predictions of what is fitted: a CSV a method and fold, beside it a JSON that says which
            code, training rows and predicted rows it belongs to. One of others is computed anew.
        progress: told how far the run is.

    Raises:
        DataError: ``cache`` cannot be written.
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
                    progress.step(method.name, fold)
                try:
                    predicted = _cached(method, fold, rows, truth, cache)
                except GnnperfError as error:
                    missing[method.name, fold] = str(error)
                    continue
                scored.loc[rows.index, method.name] = predicted
    finally:
        if progress:
            progress.stop()
    return Benchmark(scored, tuple(methods), missing)


def _cached(method: Method, fold: str, rows: pd.DataFrame, truth: Dataset, cache: Path) -> np.ndarray:
    identity = method.identity(fold, rows)
    if identity is None:
        return method.predict(fold, rows, truth.graphs)
    table, description = cache / f"{method.name}-{fold}.csv", cache / f"{method.name}-{fold}.json"
    known = _read(table, description, identity)
    if known is not None:
        return known
    predicted = method.predict(fold, rows, truth.graphs)
    columns = ["truth", "model", "stack", "batch", "phase", "latency_ms", "source", "citation"]
    content = rows[columns].assign(predicted_ms=predicted).to_csv(index=False).encode()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        write_whole(table, content)
        write_whole(description, json.dumps({"identity": identity, "table": _digest(content)}).encode())
    except OSError as error:
        raise DataError(f"cannot write to {cache}: {error.strerror or error}") from None
    return predicted


def _read(table: Path, description: Path, identity: str) -> np.ndarray | None:
    """``[rows]`` ms that were kept; None where there are none, or those of other code or rows."""
    try:
        content = table.read_bytes()
        if json.loads(description.read_text(encoding="utf-8")) != {"identity": identity, "table": _digest(content)}:
            return None
        return pd.read_csv(table, float_precision="round_trip")["predicted_ms"].to_numpy(float)
    except (OSError, ValueError):
        return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
