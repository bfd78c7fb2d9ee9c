"""A study: made by the first process, joined by every other, and never mixed with another."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import optuna
import pandas as pd
from optuna import Study
from optuna.exceptions import DuplicatedStudyError
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from gnnperf import __version__
from gnnperf.errors import TuningError
from gnnperf.tuning.options import REPORTS_PER_FOLD, Aim, PrunerName
from gnnperf.tuning.sampler import NumberedTPE
from gnnperf.tuning.space import SPACE

if TYPE_CHECKING:
    from gnnperf.evaluation.protocols.folds import Fold
    from gnnperf.training.config import TrainingConfig

IDENTITY = "identity"
_MADE_WITHIN_S = 20


def make_pruner(name: PrunerName, folds: int) -> BasePruner:
    """The pruner for trials that report twice a fold.

    ``median`` (Golovin et al. 2017) ends a trial that is worse than half of the earlier ones at the same report, from
    the seventh trial on and not before the end of the first fold, as the middle of a training says little.
    ``hyperband`` (Li et al. 2018) ends more trials, and earlier.
    """
    if name == PrunerName.MEDIAN:
        return MedianPruner(n_startup_trials=6, n_warmup_steps=1)
    if name == PrunerName.HYPERBAND:
        return HyperbandPruner(min_resource=1, max_resource=folds * REPORTS_PER_FOLD, reduction_factor=3)
    return NopPruner()


def study_identity(
    config: TrainingConfig, folds: list[Fold], device: str, aim: Aim, inference_weight: float, seed: int
) -> dict[str, str]:
    """What has to be the same for two trials to be comparable, in words a user can act on."""
    rows = hashlib.sha256()
    for fold in folds:
        for frame in (fold.train, fold.test):
            rows.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return {
        "version of gnnperf": __version__,
        "data": rows.hexdigest()[:16],
        "search space": _digest(repr(sorted(SPACE.items()))),
        "configuration": _digest(config.model_dump_json()),
        "steps": str(config.optimisation.steps),
        "device": device,
        "objective": str(aim),
        "weight of inference": f"{inference_weight:g}",
        "seed": str(seed),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def open_study(
    storage: BaseStorage,
    name: str,
    aim: Aim,
    seed: int,
    pruner: BasePruner,
    identity: dict[str, str],
    fill: Callable[[Study], object],
) -> Study:
    """Make the study, or join it.

    Args:
        storage: where it is kept.
        name: of the study; a storage holds any number.
        aim: what it minimises.
        seed: of its sampler.
        pruner: of this process.
        identity: see :func:`study_identity`.
        fill: queues the study's first trials; called by the process that makes it, before any other can join.

    Raises:
        TuningError: a study of that name differs in its identity, or was made by something else.
    """
    options = {"storage": storage, "sampler": NumberedTPE(seed), "pruner": pruner}
    try:
        study = optuna.create_study(study_name=name, directions=["minimize"] * len(aim.figures), **options)
    except DuplicatedStudyError:
        study = optuna.load_study(study_name=name, **options)
        _refuse_another(study, identity)
    else:
        fill(study)
        study.set_user_attr(IDENTITY, identity)  # last, as the others wait for it
    return study


def _refuse_another(study: Study, identity: dict[str, str]) -> None:
    deadline = time.monotonic() + _MADE_WITHIN_S
    while (found := study.user_attrs.get(IDENTITY)) is None:  # another process may be making it at this moment
        if time.monotonic() > deadline:
            raise TuningError(
                f"the study {study.study_name} was not made by `gnnperf tune`, or that was stopped at once: "
                "choose another --study or --storage"
            )
        time.sleep(0.2)
    differing = [key for key in identity if found.get(key) != identity[key]]
    if differing:
        raise TuningError(
            f"the study {study.study_name} was made with another {', '.join(differing)}: give what it was made with "
            "to continue it, or choose another --study"
        )


def own_trial(study: Study, values: dict[str, object]) -> FrozenTrial | None:
    """The complete trial of exactly these values, such as the tuned configuration's own; None without one."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return next((trial for trial in complete if trial.params == values), None)


def best_trial(study: Study) -> FrozenTrial | None:
    """The complete trial with the smallest error; None without one."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return min(complete, key=lambda trial: trial.values[0], default=None)
