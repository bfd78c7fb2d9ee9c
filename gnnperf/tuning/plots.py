"""History and importances of a study as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from optuna import Study
from optuna.trial import TrialState

from gnnperf.errors import TuningError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

matplotlib.use("Agg")
import matplotlib.pyplot as plt

_SIZE = (7, 4)


def plot_history(study: Study, path: Path) -> None:
    """Error of every trial in the order of their numbers, and the best so far.

    Raises:
        TuningError: the picture cannot be written.
    """
    figure, axes = plt.subplots(figsize=_SIZE, layout="constrained")
    trials = study.get_trials(deepcopy=False)
    complete = [(trial.number, trial.values[0]) for trial in trials if trial.state == TrialState.COMPLETE]
    pruned = [(trial.number, trial.values[0]) for trial in trials if trial.state == TrialState.PRUNED and trial.values]
    numbers, errors = zip(*complete, strict=True)
    axes.scatter(numbers, errors, s=22, color="C0", zorder=3, label=f"complete ({len(complete)})")
    if pruned:
        axes.scatter(
            *zip(*pruned, strict=True), s=22, color="0.6", marker="x", label=f"pruned, as they stood ({len(pruned)})"
        )
    axes.step(numbers, np.minimum.accumulate(errors), where="post", color="C3", label="best so far")
    axes.set(xlabel="trial", ylabel="MAPE in % on families left out", yscale="log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.legend(frameon=False, fontsize="small")
    _save(figure, path)


def plot_importance(importances: dict[str, float], path: Path) -> None:
    """Bars of :func:`gnnperf.tuning.results.importances`, the largest on top.

    Raises:
        TuningError: the picture cannot be written.
    """
    figure, axes = plt.subplots(figsize=(_SIZE[0], 0.8 + 0.24 * len(importances)), layout="constrained")
    axes.barh(list(importances), list(importances.values()), color="C0")
    axes.invert_yaxis()
    axes.set(xlabel="importance for reaching low errors (PED-ANOVA)")
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    try:
        figure.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        raise TuningError(f"cannot write the plot {path}: {error}") from None
    finally:
        plt.close(figure)
