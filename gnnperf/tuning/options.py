"""Choices that a user has in a study, by name; the command line shows them without importing torch or Optuna."""

from __future__ import annotations

from enum import StrEnum

REPORTS_PER_FOLD = 2  # halfway and at the end
TRIAL_SEED = "seed"  # attribute of a trial that is not trained with the configuration's seed


class Aim(StrEnum):
    """What a study minimises."""

    ACCURACY = "accuracy"
    ACCURACY_PARAMETERS = "accuracy,parameters"
    ACCURACY_PREDICT_TIME = "accuracy,predict-time"

    @property
    def figures(self) -> tuple[str, ...]:
        """Names of what is minimised, as in tables; the first is the error in per cent."""
        second = {"parameters": "parameters", "predict-time": "predict_cpu_ms"}
        return ("mape", *(second[name] for name in self.split(",")[1:]))


class PrunerName(StrEnum):
    """How hopeless trials are ended early."""

    MEDIAN = "median"
    HYPERBAND = "hyperband"
    NONE = "none"
