"""Fits that do not depend on one another, one after the other or on several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gnnperf.errors import GnnperfError


@dataclass(frozen=True)
class Fit:
    """A fit and what it predicts.

    Attributes:
        name: for the progress bar.
        predict: fits, and gives ``[rows]`` ms.
    """

    name: str
    predict: Callable[[], np.ndarray]


class BenchmarkProgress(Protocol):
    """What a run tells of itself."""

    def start(self, names: list[str]) -> None:
        """These are to be done; what earlier runs did is not among them."""

    def done(self, name: str) -> None:
        """One of them is finished."""

    def stop(self) -> None:
        """No more is to come."""


def run_fits(
    fits: Sequence[Fit], jobs: int = 1, progress: BenchmarkProgress | None = None
) -> Iterator[tuple[int, np.ndarray | GnnperfError]]:
    """Positions of fits, as they finish, and what each predicts, or why it cannot.

    Args:
        fits: what to do.
        jobs: processes; 1 stays in this one.
        progress: told how far the run is.
    """
    from joblib import Parallel, delayed

    if not fits:
        return
    if progress:
        progress.start([fit.name for fit in fits])
    try:
        parallel = Parallel(n_jobs=min(jobs, len(fits)), return_as="generator_unordered")
        for position, predicted in parallel(delayed(_run)(position, fit) for position, fit in enumerate(fits)):
            if progress:
                progress.done(fits[position].name)
            yield position, predicted
    finally:
        if progress:
            progress.stop()


def attempt(fit: Fit) -> np.ndarray | GnnperfError:
    """``[rows]`` ms, or why there are none."""
    try:
        return fit.predict()
    except GnnperfError as error:
        return error


def _run(position: int, fit: Fit) -> tuple[int, np.ndarray | GnnperfError]:
    return position, attempt(fit)
