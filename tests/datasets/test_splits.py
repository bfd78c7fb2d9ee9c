import numpy as np
import pandas as pd
import pytest

from gnnperf.datasets.splits import HEADLINE_FAMILIES, split_by_device, split_by_family, split_by_graph
from gnnperf.errors import DataError


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    family = rng.choice(["vgg", "resnet", "lenet", "fbnet"], 400)
    return pd.DataFrame(
        {
            "family": pd.Categorical(family),
            "device": pd.Categorical(rng.choice(["1080ti", "k80"], 400)),
            "graph_key": pd.Categorical([f"{number:x}" for number in rng.integers(0, 50, 400)]),
            "model": "x",
        }
    )


def test_headline_families_are_never_in_training(frame):
    train, held = split_by_family(frame, HEADLINE_FAMILIES)
    assert not set(train["family"]) & set(HEADLINE_FAMILIES)
    assert set(held["family"]) <= set(HEADLINE_FAMILIES)
    assert len(train) + len(held) == len(frame)


def test_devices_are_split_apart(frame):
    train, held = split_by_device(frame, ["k80"])
    assert set(train["device"]) == {"1080ti"} and set(held["device"]) == {"k80"}


def test_a_graph_is_never_on_both_sides(frame):
    train, held = split_by_graph(frame, 0.2, seed=1)
    assert not set(train["graph_key"]) & set(held["graph_key"])
    assert held["graph_key"].astype(str).nunique() == 10
    again = split_by_graph(frame, 0.2, seed=1)[1]
    assert held.index.equals(again.index)
    assert not held.index.equals(split_by_graph(frame, 0.2, seed=2)[1].index)


def test_rows_without_a_graph_are_told_apart_by_model(frame):
    frame["graph_key"] = ""
    frame["model"] = np.arange(400) // 4
    train, held = split_by_graph(frame, 0.5, seed=0)
    assert len(train) == len(held) == 200
    assert not set(train["model"]) & set(held["model"])


def test_an_impossible_fraction_is_refused(frame):
    with pytest.raises(DataError, match="between 0 and 1"):
        split_by_graph(frame, 1.5, seed=0)
