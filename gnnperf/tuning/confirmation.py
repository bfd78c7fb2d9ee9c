"""The best trials again under other seeds: the best of many is partly luck, and one seed differs from the next.

The trainings are trials of a second study beside the first, so that they are shared by processes, stopped, continued
and retried like any others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from gnnperf.tuning.options import TRIAL_SEED
from gnnperf.tuning.study import own_trial

CANDIDATE = "candidate"


@dataclass(frozen=True)
class Confirmed:
    """What a candidate came to under other seeds than that of its trial.

    Attributes:
        trial: its number in the study.
        mape: its error there, in per cent, which it was chosen by.
        others: errors by other seeds, in per cent.
    """

    trial: int
    mape: float
    others: dict[int, float]

    @property
    def mean(self) -> float:
        """Mean error over the other seeds, in per cent: unlike :attr:`mape`, nothing was chosen by it before."""
        return float(np.mean(list(self.others.values())))


def candidates(study: Study, own: dict[str, object], best: int) -> list[FrozenTrial]:
    """The complete trials with the smallest errors, and that of the configuration's own values."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    chosen = sorted(complete, key=lambda trial: trial.values[0])[:best]
    mine = own_trial(study, own)
    return chosen if mine is None or mine in chosen else [*chosen, mine]


def enqueue(confirmation: Study, chosen: list[FrozenTrial], seeds: list[int]) -> int:
    """Queue every candidate under every seed, unless that was done before; how many trials the study then has to have.

    A study that was confirmed before and went on has other candidates; what was trained of the old ones is kept.

    Args:
        confirmation: the second study.
        chosen: trials of the first.
        seeds: of their trainings.
    """
    there = {_key(trial) for trial in confirmation.get_trials(deepcopy=False)}
    missing = [(trial, seed) for seed in seeds for trial in chosen if (trial.number, seed) not in there]
    for trial, seed in missing:
        confirmation.enqueue_trial(trial.params, user_attrs={CANDIDATE: trial.number, TRIAL_SEED: seed})
    return len(there) + len(missing)


def confirmed(confirmation: Study, chosen: list[FrozenTrial]) -> list[Confirmed]:
    """What every candidate came to, the smallest mean first.

    A candidate whose training diverged under one of the seeds is left out: its mean is not known.
    """
    errors: dict[int, dict[int, float]] = {}
    for trial in confirmation.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        number, seed = _key(trial)
        errors.setdefault(number, {})[seed] = trial.values[0]
    seeds = {seed for others in errors.values() for seed in others}
    found = [Confirmed(trial.number, trial.values[0], errors.get(trial.number, {})) for trial in chosen]
    return sorted(
        (candidate for candidate in found if candidate.others.keys() == seeds), key=lambda candidate: candidate.mean
    )


def _key(trial: FrozenTrial) -> tuple[int, int]:
    return trial.user_attrs[CANDIDATE], trial.user_attrs[TRIAL_SEED]
