"""Rows held out are never among those trained on."""

import pandas as pd
import pytest

from gnnperf.errors import TrainingError
from gnnperf.training.config import DataConfig
from gnnperf.training.split import split_rows


def test_held_out_families_are_held_out_whatever_device_or_phase(tiny_dataset):
    split = split_rows(tiny_dataset.frame, DataConfig(), seed=0)
    assert set(split.held_out["family"]) == {"lenet", "alexnet", "vgg"}
    assert not {"lenet", "alexnet", "vgg"} & set(split.train["family"])
    assert len(split.train) + len(split.held_out) + len(split.in_space) == len(tiny_dataset)


def test_search_spaces_are_split_by_graph(tiny_dataset):
    split = split_rows(tiny_dataset.frame, DataConfig(search_space_share=0.5), seed=0)
    trained = set(split.train.loc[split.train["family"] == "nasbench201", "graph_key"])
    held_out = set(split.in_space["graph_key"])
    assert len(trained) == len(held_out) == 3 and not trained & held_out


def test_rows_without_an_open_licence_are_scored_but_never_trained_on(tiny_dataset):
    closed = tiny_dataset.frame["family"].isin(["resnet", "vgg"])
    frame = tiny_dataset.frame.assign(use=closed.map({True: "evaluate", False: "train"}))
    split = split_rows(frame, DataConfig(), seed=0)
    assert set(split.train["use"]) == {"train"} and "resnet" not in set(split.train["family"])
    assert "vgg" in set(split.held_out["family"])
    with pytest.raises(TrainingError, match="no rows to train on"):
        split_rows(frame.assign(use="evaluate"), DataConfig(), seed=0)


def test_layers_are_drawn_by_the_seed(tiny_dataset):
    def layers(seed, rows):
        train = split_rows(tiny_dataset.frame, DataConfig(layer_rows=rows), seed).train
        return train.loc[train["kind"] == "layer", "latency_ms"].tolist()

    assert layers(0, 0) == []
    assert layers(1, 5) == layers(1, 5) != layers(2, 5)
    assert len(layers(0, 5)) == 5 and len(layers(0, 10**6)) == 16


def test_of_each_source_some_networks_are_used_with_all_their_rows(tiny_dataset):
    def networks(seed, most):
        train = split_rows(tiny_dataset.frame, DataConfig(source_networks=most), seed).train
        train = train[(train["kind"] == "model") & (train["family"] != "nasbench201")]
        counts = train.groupby(["source", "model"], observed=True).size()
        assert (counts == 4).all()  # two batches, two phases
        return [frozenset(counts[source].index) for source in counts.index.unique("source")]

    assert [len(names) for names in networks(0, 2)] == [2, 2]
    assert networks(0, 2) == networks(0, 2) and len({tuple(networks(seed, 2)) for seed in range(5)}) > 1
    assert networks(0, 3) == networks(0, 0) == [{"squeezenet1_1", "resnet18", "densenet121"}] * 2


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"held_out_families": ["vggg"]}, "held_out_families.*vggg.*vgg"),
        ({"devices": ["1080ti", "v10O"]}, "devices.*v10O"),
        ({"sources": ["nowhere"]}, "sources.*nowhere"),
        ({"precisions": ["fp16"]}, "precisions.*fp16"),
        ({"held_out_families": ["lenet", "alexnet", "vgg", "squeezenet", "resnet", "densenet", "nasbench201"],
          "layer_rows": 0}, "no rows"),
    ],
)  # fmt: skip
def test_names_without_rows_and_empty_training_sets_are_refused(tiny_dataset, config, message):
    with pytest.raises(TrainingError, match=message):
        split_rows(tiny_dataset.frame, DataConfig(**config), seed=0)


def test_only_gpus_are_trained_on_unless_devices_are_named(tiny_dataset):
    frame = tiny_dataset.frame.copy()
    frame["device"] = frame["device"].astype(str).replace("v100-pcie-32gb", "xeon-gold-6226")
    assert set(split_rows(frame, DataConfig(held_out_families=()), 0).train["device"]) == {"1080ti"}
    named = DataConfig(held_out_families=(), devices=("xeon-gold-6226",))
    assert set(split_rows(frame, named, 0).train["device"]) == {"xeon-gold-6226"}


def test_rows_that_ran_without_what_made_the_others_fast_are_not_trained_on(tiny_dataset):
    frame = tiny_dataset.frame.copy()
    broken = frame.assign(source="dlinfbench", device="1080", stack="pytorch-0.1")
    sound = frame.assign(source="dlinfbench", device="1080", stack="mxnet")
    train = split_rows(pd.concat([broken, sound], ignore_index=True), DataConfig(held_out_families=()), 0).train
    assert set(train["stack"]) == {"mxnet"}
