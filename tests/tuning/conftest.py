"""A configuration of few steps, and folds of the families of ``tiny_dataset``."""

import optuna
import pytest

from gnnperf.training.config import TrainingConfig
from gnnperf.tuning import folds


@pytest.fixture(autouse=True)
def quiet_optuna():
    """Optuna logs every trial, with all its parameters."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(verbosity)


@pytest.fixture
def config() -> TrainingConfig:
    return TrainingConfig(
        name="tiny",
        network={"depth": 1, "width": 16, "local_width": 16},
        optimisation={"steps": 4, "batch": {"model": 8, "search_space": 2, "layer": 16, "unlabelled": 0}},
    )


@pytest.fixture
def small_folds(monkeypatch):
    """A family of four rows has a fold of its own."""
    monkeypatch.setattr(folds, "_LEAST_ROWS", 4)
