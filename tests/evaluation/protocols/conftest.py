"""Rows of two stacks and three batch sizes, made from the rows of ``tiny_dataset``."""

import pytest

from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.schema import concatenate
from gnnperf.training.config import TrainingConfig


@pytest.fixture(scope="session")
def varied_dataset(tiny_dataset) -> Dataset:
    frame = tiny_dataset.frame
    models = frame[frame["kind"] == "model"]
    larger = models[models["batch"] == 8].assign(batch=64, latency_ms=lambda rows: rows["latency_ms"] * 8)
    other = models.assign(stack="mxnet", latency_ms=models["latency_ms"] * 1.2)
    return Dataset(None, concatenate([frame, larger, other]), tiny_dataset.graphs)


@pytest.fixture
def config() -> TrainingConfig:
    return TrainingConfig(
        name="tiny",
        data={"search_space_share": 0.5},
        network={"depth": 1, "width": 8, "local_width": 8},
        optimisation={"steps": 4, "batch": {"model": 4, "search_space": 2, "layer": 2, "unlabelled": 0}},
    )
