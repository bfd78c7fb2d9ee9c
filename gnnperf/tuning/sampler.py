"""Draws that depend on the study alone, not on which process makes them or how often it was stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState

_STARTUP_TRIALS = 12  # drawn at random, before there is something to learn from


class NumberedTPE(BaseSampler):
    """A tree-structured Parzen estimator (Bergstra et al. 2011; multivariate) that every trial seeds by its number.

    A sampler that is seeded once draws in a process that continues a study what the stopped one drew, and the same in
    every worker. With the number of the trial in the seed, a study by one process is the same interrupted or not, and
    no two trials of any number of processes start from the same random numbers.

    Args:
        seed: of the study.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._sampler = TPESampler()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:  # noqa: D102
        self._sampler = TPESampler(
            seed=(self._seed + trial.number) % 2**32,
            n_startup_trials=_STARTUP_TRIALS,
            multivariate=True,
            constant_liar=True,  # trials that run elsewhere count as bad ones, so that workers do not flock together
        )
        self._sampler.before_trial(study, trial)

    def infer_relative_search_space(  # noqa: D102
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return self._sampler.infer_relative_search_space(study, trial)

    def sample_relative(  # noqa: D102
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._sampler.sample_relative(study, trial, search_space)

    def sample_independent(  # noqa: D102
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self._sampler.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(  # noqa: D102
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        self._sampler.after_trial(study, trial, state, values)
