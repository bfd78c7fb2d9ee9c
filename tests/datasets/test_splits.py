import numpy as np
import pandas as pd
import pytest

from gnnperf.datasets.splits import (
    HEADLINE_FAMILIES,
    sample_models,
    split_above_batches,
    split_between_batches,
    split_by_device,
    split_by_family,
    split_by_graph,
    split_by_stack,
)
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


def series(model: str, batches: list[int], kind: str = "model", stack: str = "pytorch") -> pd.DataFrame:
    constant = dict.fromkeys(
        ("source", "device", "framework_version", "precision", "phase", "window", "optimizer"), "x"
    )
    return pd.DataFrame({"model": model, "batch": batches, "kind": kind, "stack": stack, "family": model} | constant)


@pytest.fixture
def batches() -> pd.DataFrame:
    return pd.concat(
        [
            series("eight", [1, 2, 4, 8, 16, 32, 64, 128]),
            series("three", [256, 1, 32, 32]),  # in no order, one of them measured twice
            series("two", [1, 8]),
            series("two", [8], stack="caffe"),
            series("layer", [1, 2, 4], kind="layer"),
        ],
        ignore_index=True,
    )


def held_batches(held: pd.DataFrame) -> dict:
    return {model: sorted(part["batch"]) for model, part in held.groupby("model")}


def test_batches_between_are_held_out_and_always_have_a_larger_one_in_training(batches):
    train, held = split_between_batches(batches)
    assert held_batches(held) == {"eight": [2, 8, 32], "three": [32, 32]}
    assert len(train) + len(held) == len(batches)


def test_batches_above_are_held_out_by_series(batches):
    train, held = split_above_batches(batches)
    assert held_batches(held) == {"eight": [16, 32, 64, 128], "three": [256], "two": [8]}
    assert ((train["model"] == "two") & (train["stack"] == "caffe")).sum() == 1  # its only batch there
    assert len(train) + len(held) == len(batches)


def test_single_layers_alone_have_no_batch_held_out():
    layers = series("layer", [1, 2, 4], kind="layer")
    for split in (split_between_batches, split_above_batches):
        assert split(layers)[1].empty


def test_stacks_are_split_apart(batches):
    train, held = split_by_stack(batches, ["caffe"])
    assert set(held["stack"]) == {"caffe"} and set(train["stack"]) == {"pytorch"}


def test_a_sample_keeps_all_rows_of_the_networks_drawn():
    many = pd.concat([series(f"net{i}", [1, 8]).assign(family="space") for i in range(10)] + [series("few", [1])])
    drawn = sample_models(many, 4, seed=0)
    assert drawn["model"].value_counts().drop("few").tolist() == [2] * 4
    assert (drawn["model"] == "few").sum() == 1
    assert drawn.equals(sample_models(many, 4, seed=0))
    assert set(drawn["model"]) != set(sample_models(many, 4, seed=1)["model"])
