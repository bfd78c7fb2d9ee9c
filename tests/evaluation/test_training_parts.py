"""Forward, backward and update told apart; and what has to hold of them in the shipped predictor."""

import numpy as np
import pandas as pd
import pytest

from gnnperf import Predictor, zoo
from gnnperf.conditions import Conditions, Optimizer, Phase, Stack
from gnnperf.devices import get_device
from gnnperf.evaluation.training_parts import (
    accuracy,
    backward_ratios,
    held_out_mask,
    step_costs,
    update_order,
    update_passes,
)
from gnnperf.graph import read_graph, to_arrays
from gnnperf.training.config import TrainingConfig

NETWORKS = ("lenet", "alexnet", "vgg16", "resnet50", "densenet121", "squeezenet1_1", "mobilenet_v2", "inception_v3",
            "bert_base")  # fmt: skip
PASSES = {"none": 1.0, "sgd": 5.0, "momentum": 7.0, "adagrad": 7.5, "adadelta": 9.0, "adam": 9.5, "rmsprop": 10.0}


@pytest.fixture
def dense_layers():
    """Layers whose steps cost exactly so many passes over their weights, and their work."""
    random = np.random.default_rng(0)
    rows = pd.DataFrame({"optimizer": list(PASSES) * 30, "layer": "dense", "device": "1080ti"})
    rows["weight_bytes"] = 10 ** random.uniform(5, 8, len(rows))
    rows["activation_bytes"] = 10 ** random.uniform(4, 7, len(rows))
    rows["macs"] = rows["weight_bytes"] * random.integers(1, 64, len(rows))
    weights_ms = rows["weight_bytes"] / 1e6 / get_device("1080ti").bandwidth_gb_s * rows["optimizer"].map(PASSES)
    work_ms = rows["macs"] / 5e9 * np.where(rows["optimizer"] == "none", 1, 3)
    rows["latency_ms"] = weights_ms + work_ms + 0.1
    rows["predicted_ms"] = weights_ms + work_ms + np.where(rows["optimizer"] == "adam", 0.5, 0.1)
    return rows


def test_passes_over_the_weights_are_found_again(dense_layers):
    assert update_passes(dense_layers, "latency_ms") == pytest.approx(PASSES, rel=1e-3)
    # A constant for each call is not taken for traffic.
    assert update_passes(dense_layers, "predicted_ms")["adam"] == pytest.approx(PASSES["adam"], rel=1e-3)


def test_convolutions_do_not_count(dense_layers):
    convolutions = dense_layers.assign(layer="convolution", latency_ms=99.0)
    assert update_passes(pd.concat([dense_layers, convolutions]), "latency_ms") == pytest.approx(PASSES, rel=1e-3)


def test_updates_are_ranked_without_the_forward_pass(dense_layers):
    order = update_order(dense_layers)
    assert order["kendall_tau"] == pytest.approx(1)
    assert set(order["beyond_sgd"]) == set(PASSES) - {"none"}
    assert order["beyond_sgd"]["adam"]["measured"] == pytest.approx(4.5, rel=1e-2)


def test_steps_are_compared_with_forward_pass_and_sgd_at_their_batch():
    rows = pd.DataFrame(
        [("vgg16", "v100-pcie", batch, optimizer, batch * measured, batch * predicted)
         for batch in (1, 8)
         for optimizer, measured, predicted in (("none", 1.0, 2.0), ("sgd", 3.0, 5.0), ("adam", 4.0, 5.5))],
        columns=["model", "device", "batch", "optimizer", "latency_ms", "predicted_ms"],
    )  # fmt: skip
    rows = pd.concat([rows, rows[:1].assign(batch=16)])  # a forward pass alone
    costs = step_costs(rows).set_index(["batch", "optimizer"])
    assert len(costs) == 4
    assert costs.loc[(8, "adam"), "measured_over_sgd_ms"] == 8 and costs.loc[(8, "adam"), "predicted_over_sgd_ms"] == 4
    assert (
        costs.loc[(1, "sgd"), "measured_over_forward"] == 3 and costs.loc[(1, "sgd"), "predicted_over_forward"] == 2.5
    )


def test_backward_over_forward_needs_both():
    rows = pd.DataFrame(
        [("resnet", "resnet50", "1080", 16, phase, ms, 2 * ms) for phase, ms in (("forward", 10.0), ("backward", 21.0))]
        + [("vgg", "vgg16", "1080", 16, "forward", 5.0, 5.0)],
        columns=["family", "model", "device", "batch", "phase", "latency_ms", "predicted_ms"],
    )
    ratios = backward_ratios(rows)
    assert ratios[["model", "measured", "predicted"]].to_numpy().tolist() == [["resnet50", 2.1, 2.1]]


def test_rows_that_were_trained_on_are_not_held_out(tiny_dataset):
    config = TrainingConfig.model_validate({"name": "x", "data": {"held_out_families": ["lenet"], "layer_rows": 3}})
    frame = tiny_dataset.frame
    mask = held_out_mask(frame, config)
    assert mask[frame["family"] == "lenet"].all()
    assert not mask[frame["family"] == "resnet"].any()
    assert (~mask[frame["kind"] == "layer"]).sum() == 3


def test_accuracy_tells_its_groups_apart():
    rows = pd.DataFrame({"phase": ["forward", "forward", "backward"], "latency_ms": 1.0, "predicted_ms": [1.1, 0.9, 2]})
    by_phase = {record["phase"]: record for record in accuracy(rows, ["phase"])}
    assert by_phase["forward"]["mape"] == pytest.approx(0.1) and by_phase["forward"]["rows"] == 2
    assert by_phase["backward"]["bias"] == pytest.approx(1)


# ---- what has to hold of the shipped predictor ----


@pytest.fixture(scope="module")
def predict():
    predictor = Predictor.load()
    graphs = [to_arrays(read_graph(zoo.build(name))) for name in NETWORKS]

    def latencies(batch, device="1080ti", **conditions):
        cases = [(get_device(device), Conditions(**conditions))] * len(graphs)
        return predictor.latencies([graph.at_batch(batch) for graph in graphs], cases)[0]

    return latencies


@pytest.mark.parametrize("stack", [Stack.PYTORCH, Stack.TENSORFLOW_1, Stack.TORCH7, Stack.TENSORFLOW_2])
@pytest.mark.parametrize("batch", [1, 16, 64])
def test_a_step_is_never_below_its_passes(predict, batch, stack):
    forward, backward = (predict(batch, stack=stack, phase=phase) for phase in (Phase.FORWARD, Phase.BACKWARD))
    for optimizer in Optimizer:
        step = predict(batch, stack=stack, phase=Phase.TRAINING, optimizer=optimizer)
        assert (step > forward).all() and (step > backward).all(), optimizer


@pytest.mark.parametrize("device", ["1080ti", "v100-pcie"])
@pytest.mark.parametrize("batch", [1, 16, 64])
def test_updates_with_more_state_take_longer(predict, batch, device):
    none, sgd, momentum, adam = (
        predict(batch, device, phase=Phase.TRAINING, optimizer=optimizer)
        for optimizer in (Optimizer.NONE, Optimizer.SGD, Optimizer.MOMENTUM, Optimizer.ADAM)
    )
    slack = 1 + 1e-5
    assert (none <= sgd * slack).all() and (sgd <= momentum * slack).all() and (momentum <= adam * slack).all()


def test_an_update_costs_by_the_weights_not_by_the_batch(predict):
    extra = [
        predict(batch, phase=Phase.TRAINING, optimizer=Optimizer.ADAM) - predict(batch, phase=Phase.TRAINING)
        for batch in (16, 64)
    ]
    vgg = NETWORKS.index("vgg16")
    assert extra[0][vgg] == pytest.approx(extra[1][vgg], rel=0.1)
    # 138 million weights against 1.2 million, and each is moved several times.
    assert extra[1][vgg] > 20 * extra[1][NETWORKS.index("squeezenet1_1")] > 0
