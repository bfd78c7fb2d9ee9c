"""The published per-layer methods on layers of a device whose laws are known."""

import numpy as np
import pytest

from gnnperf.baselines import BASELINES
from gnnperf.baselines.layers import LayerKind, LayerTable, rows_of_kind
from gnnperf.conditions import Phase
from gnnperf.datasets.graph_building import build_arrays
from gnnperf.datasets.schema import concatenate
from gnnperf.devices import get_device
from gnnperf.errors import DataError

NETWORKS = ("justus2018", "perfnetv2", "resperfnet", "cdmpp")
MANY = 400


def true_ms(rows):
    """0.1 ms, and what the operations take at a tenth of the peak; three times as much in a training step."""
    latency_ms = np.empty(len(rows))
    numbered = rows.reset_index(drop=True)
    for kind in LayerKind:
        of_kind = rows_of_kind(numbered, kind)
        table = LayerTable.of_rows(of_kind, kind)
        passes = np.where(table.optimizer > 0, 3, 1)
        latency_ms[of_kind.index] = 0.1 + passes * 1e4 * table.operations() / table.hardware[:, 0]
    return latency_ms


@pytest.fixture(scope="module")
def measured(layer_rows):
    """Function that makes random layers of a source, on its devices, with the latency that they have there."""

    def make(source, count, seed, citation="made", optimizers=("none",)):
        rng = np.random.default_rng(seed)
        pick = rng.integers
        specs = []
        for _ in range(count):
            sizes = f"i{pick(8, 64)}-c{pick(1, 64)}"
            window = f"k{pick(1, 6)}-s{pick(1, 3)}-{('same', 'valid')[pick(2)]}"
            conv = f"conv/{sizes}-f{pick(1, 64)}-{window}{('', '-bias')[pick(2)]}{('', '-relu')[pick(2)]}"
            dense = f"dense/c{pick(1, 2000)}-f{pick(1, 2000)}{('', '-relu')[pick(2)]}"
            specs.append((conv, dense, f"pool/{sizes}-{window}-max")[pick(3 if source == "resperfnet" else 2)])
        rows = layer_rows(
            specs, source=source, citation=citation, batch=pick(1, 64, count), optimizer=rng.choice(optimizers, count),
            device=rng.choice(["1080ti"] if source == "resperfnet" else ["1080ti", "k40", "v100-pcie"], count),
        )  # fmt: skip
        return rows.assign(latency_ms=true_ms(rows))

    return make


@pytest.fixture(scope="module")
def fitted(measured):
    """Function that gives a baseline, fitted in seconds."""
    made = {}

    def fit(name):
        if name not in made:
            baseline = BASELINES[name]()
            optimizers = ("none",) if baseline.source == "resperfnet" else ("none", "sgd")
            rows = measured(baseline.source, MANY, 0, "conv_train.csv", optimizers)
            baseline.epochs = 40
            made[name] = baseline.fit(rows, None)
        return made[name]

    return fit


@pytest.mark.parametrize("name", NETWORKS)
def test_layers_never_seen_are_predicted(name, fitted, measured):
    baseline = fitted(name)
    test = measured(baseline.source, 300, 1)
    test = test[test["device"] == "1080ti"]
    error = np.abs(baseline.layer_latencies(test) / test["latency_ms"].to_numpy() - 1)
    constant = np.abs(np.exp(np.log(test["latency_ms"]).mean()) / test["latency_ms"] - 1)
    assert np.median(error) < min(0.35, constant.median() / 2)


@pytest.mark.parametrize("name", ["justus2018", "perfnetv2", "resperfnet-justus2018", "cdmpp"])
def test_training_steps_take_longer_than_forward_passes(name, fitted):
    graph, device = build_arrays("vgg11").at_batch(8), get_device("1080ti")
    forward, backward, step = (
        fitted(name).predict(graph, device, 8, phase) for phase in (Phase.INFERENCE, Phase.BACKWARD, Phase.TRAINING)
    )
    assert 0 < forward < step and 0 < backward < step


def test_resperfnet_knows_one_device_and_forward_passes(fitted):
    graph = build_arrays("vgg11")
    with pytest.raises(DataError, match="knows no other device, such as v100-pcie"):
        fitted("resperfnet").predict(graph, get_device("v100-pcie"), 1, Phase.INFERENCE)
    with pytest.raises(DataError, match="forward passes alone"):
        fitted("resperfnet").predict(graph, get_device("1080ti"), 1, Phase.TRAINING)


def test_resperfnet_is_never_fitted_on_the_authors_test_layers(measured):
    with pytest.raises(DataError, match="single layers of resperfnet"):
        BASELINES["resperfnet"]().fit(measured("resperfnet", 50, 0, "layers_1080ti/conv_test.csv"), None)


@pytest.mark.parametrize("name", ["justus2018", "perfnetv2", "cdmpp"])
def test_devices_are_told_apart_by_their_figures(name, fitted, measured):
    test = measured("justus2018", 300, 1)
    test = test.nlargest(50, "latency_ms")  # of the others the fixed cost is most
    k40, unseen, v100 = (
        np.median(fitted(name).layer_latencies(test.assign(device=slug))) for slug in ("k40", "1080", "v100-pcie")
    )
    assert k40 > 1.1 * v100
    assert unseen > 0 and unseen not in (k40, v100)


@pytest.mark.parametrize("name", ["resperfnet", "perfnetv2"])
def test_the_same_rows_give_the_same_predictions(name, measured):
    source = BASELINES[name]().source
    rows, test = measured(source, 100, 0, "conv_train.csv"), measured(source, 20, 1)
    predicted = []
    for _ in range(2):
        baseline = BASELINES[name]()
        baseline.epochs = 2
        predicted.append(baseline.fit(rows, None).layer_latencies(test))
    assert np.array_equal(*predicted, equal_nan=True)


def test_between_layers_of_perfnet_nothing_is_copied(fitted, layer_rows):
    baseline, device = fitted("perfnetv2"), get_device("1080ti")
    specs = ["dense/c1024-f100-relu", "dense/c100-f10"]  # those of LeNet
    head = baseline.layer_latencies(layer_rows(specs, batch=8)).sum()
    lenet = build_arrays("lenet").at_batch(8)
    convolutions = ["conv/i28-c1-f32-k5-s1-valid-bias", "conv/i12-c32-f64-k5-s1-valid-bias"]
    alone = head + baseline.layer_latencies(layer_rows(convolutions, batch=8)).sum()
    assert 0 < baseline.predict(lenet, device, 8, Phase.INFERENCE) < alone


def test_a_layer_of_the_table_takes_what_its_entry_says(layer_rows):
    specs = [f"dense/c{size}-f{size}" for size in range(100, 2000, 100)]
    entries = concatenate([
        layer_rows(specs, latency_ms=np.arange(1, 20.0)),
        layer_rows(specs, latency_ms=np.arange(1, 20.0) * 3, optimizer="sgd"),
        layer_rows(specs, latency_ms=np.arange(1, 20.0) * 9, device="v100-pcie"),
    ])  # fmt: skip
    table = BASELINES["layer-lookup"]().fit(entries, None)
    assert table.layer_latencies(entries) == pytest.approx(entries["latency_ms"].to_numpy())
    # One column more than an entry has: its time by the ratio of operations.
    (wider,) = table.layer_latencies(layer_rows(["dense/c1000-f1001"]))
    assert wider == pytest.approx(10 * 1001 / 1000)
