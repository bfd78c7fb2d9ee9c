"""What is searched: values of a training configuration by their dotted names, and where each may lie."""

from __future__ import annotations

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import Trial

from gnnperf.training.config import TrainingConfig

_DIGITS = 3  # of real numbers: more would only make a configuration hard to read

SPACE: dict[str, BaseDistribution] = {
    "network.depth": IntDistribution(0, 4),
    "network.width": IntDistribution(16, 64, step=16),
    "network.local_width": IntDistribution(16, 64, step=16),
    "network.aggregator": CategoricalDistribution(("mean", "sum", "max")),
    "network.edge_features": CategoricalDistribution((True, False)),
    "network.readout": CategoricalDistribution(("roofline", "pooled")),
    "network.dropout": FloatDistribution(0.0, 0.3),
    "network.local_bound": FloatDistribution(0.2, 2.0, log=True),
    "network.context_bound": FloatDistribution(0.1, 2.0, log=True),
    "optimisation.loss": CategoricalDistribution(("log_ratio", "maple")),
    "optimisation.learning_rate": FloatDistribution(5e-4, 1e-2, log=True),
    "optimisation.physics_learning_rate": FloatDistribution(1e-3, 2e-2, log=True),
    "optimisation.effect_learning_rate": FloatDistribution(5e-3, 1e-1, log=True),
    "optimisation.correction_weight": FloatDistribution(0.05, 10.0, log=True),
    "optimisation.effect_weight": FloatDistribution(1e-4, 4e-3, log=True),
    "optimisation.physics_weight": FloatDistribution(1e-3, 5e-2, log=True),
    "optimisation.context_dropout": FloatDistribution(0.0, 0.6),
    "optimisation.focus.start": FloatDistribution(0.0, 1.0),
    "optimisation.batch.model": IntDistribution(8, 24, step=4),
    "optimisation.batch.search_space": IntDistribution(0, 12, step=2),
    "optimisation.batch.layer": IntDistribution(0, 96, step=16),
    "optimisation.batch.unlabelled": IntDistribution(0, 6, step=2),
    "optimisation.loss_weight.search_space": FloatDistribution(3e-3, 0.3, log=True),
    "optimisation.loss_weight.layer": FloatDistribution(3e-3, 0.3, log=True),
}
"""Dotted names of :class:`TrainingConfig`. Whoever changes it starts new studies: old ones are refused."""


def suggest(trial: Trial, config: TrainingConfig) -> TrainingConfig:
    """The configuration with the values that the trial draws."""
    return with_values(config, {name: _draw(trial, name, where) for name, where in SPACE.items()})


def _draw(trial: Trial, name: str, where: BaseDistribution) -> object:
    if isinstance(where, CategoricalDistribution):
        return trial.suggest_categorical(name, where.choices)
    if isinstance(where, IntDistribution):
        return trial.suggest_int(name, where.low, where.high, step=where.step)
    return trial.suggest_float(name, where.low, where.high, log=where.log)


def with_values(config: TrainingConfig, values: dict[str, object]) -> TrainingConfig:
    """The configuration with ``values`` by dotted name; real numbers keep three digits."""
    tree = config.model_dump()
    for name, value in values.items():
        *sections, key = name.split(".")
        section = tree
        for part in sections:
            section = section[part]
        section[key] = float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value
    return TrainingConfig.model_validate(tree)


def values_of(config: TrainingConfig) -> dict[str, object]:
    """The configuration's own values of what is searched; None where it names none."""
    values = {}
    for name in SPACE:
        value = config.model_dump()
        for part in name.split("."):
            value = value.get(part)
        values[name] = value
    return values


def outside(config: TrainingConfig) -> dict[str, object]:
    """Those of the configuration's own values that the search cannot draw."""
    return {name: value for name, value in values_of(config).items() if not _holds(SPACE[name], value)}


def _holds(where: BaseDistribution, value: object) -> bool:
    if isinstance(where, CategoricalDistribution):
        return value in where.choices
    if value is None or not where.low <= value <= where.high:
        return False
    return isinstance(where, FloatDistribution) or (value - where.low) % where.step == 0
