"""The public face: what goes in and comes out, and what has to hold of the shipped predictor whatever its weights."""

import dataclasses
import json
import shutil

import numpy as np
import onnx
import pytest

from gnnperf import Predictor, zoo
from gnnperf.conditions import Conditions, Optimizer, Phase, Precision
from gnnperf.devices import get_device
from gnnperf.errors import DeviceError, GnnperfError, ModelFileError
from gnnperf.graph import OpGraph, read_graph, to_arrays
from gnnperf.resources import resource

SHIPPED = resource("pretrained/base")

# Of every family, small and large, launch-bound and not.
NETWORKS = (
    "lenet5", "alexnet", "vgg16", "resnet18", "resnet50", "resnext50_32x4d", "densenet121", "squeezenet1_1",
    "inception_v3", "mobilenet_v2", "mnasnet1_0", "shufflenet_v2_x1_0", "efficientnet_b0", "nasbench201/012340",
    "bert_base",
)  # fmt: skip
DEVICES = ("1080ti", "titan-xp", "2080ti", "v100-pcie-32gb", "a100-sxm-40gb")
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)


@pytest.fixture(scope="module")
def predictor():
    return Predictor.load()


@pytest.fixture(scope="module")
def graphs():
    return {name: to_arrays(read_graph(zoo.build(name))) for name in NETWORKS}


def test_a_path_bytes_a_model_and_a_graph_give_the_same(predictor, tmp_path):
    model = zoo.build("resnet18", batch=4)
    path = tmp_path / "resnet18.onnx"
    onnx.save(model, path)
    sources = (path, str(path), path.read_bytes(), model, read_graph(model))
    found = [predictor.predict(source, device="v100") for source in sources]
    assert len({prediction.latency_ms for prediction in found}) == 1
    assert found[0].model == "resnet18" and found[0].batch == 4


def test_prediction_agrees_with_itself(predictor):
    found = predictor.predict(zoo.build("resnet18"), batch=8, phase="training", optimizer=Optimizer.ADAM)
    assert (found.batch, found.phase, found.optimizer, found.device) == (8, "training", "adam", "1080ti")
    assert found.per_sample_ms == pytest.approx(found.latency_ms / 8)
    assert found.throughput_per_s == pytest.approx(8e3 / found.latency_ms)
    assert found.macs == 8 * zoo.count("resnet18").macs and found.parameters == zoo.count("resnet18").parameters
    assert sum(operator.share for operator in found.operators) <= 1 + 1e-5
    for operator in found.operators:
        assert operator.share == pytest.approx(operator.latency_ms / found.latency_ms)
    assert json.loads(json.dumps(found.to_dict()))["operators"][0]["name"] == found.operators[0].name


def test_an_optimizer_counts_in_a_training_step_only(predictor):
    model = zoo.build("resnet18")
    inference = [predictor.predict(model, optimizer=name).latency_ms for name in ("none", "adam")]
    assert inference[0] == inference[1]
    training = [predictor.predict(model, phase="training", optimizer=name).latency_ms for name in ("none", "adam")]
    assert training[0] < training[1]


def test_graphs_together_are_predicted_as_alone(predictor, graphs):
    arrays = list(graphs.values())
    cases = [(get_device(DEVICES[i % len(DEVICES)]), Conditions()) for i in range(len(arrays))]
    together, node_ms = predictor.latencies(arrays, cases)
    for i, (graph, case) in enumerate(zip(arrays, cases, strict=True)):
        alone, alone_node_ms = predictor.latencies([graph], [case])
        np.testing.assert_allclose(alone[0], together[i], rtol=1e-4)
        assert len(node_ms[i]) == graph.num_nodes
        np.testing.assert_allclose(alone_node_ms[0], node_ms[i], rtol=1e-3, atol=1e-6)


def test_an_unknown_campaign_is_predicted_as_none(predictor, graphs):
    case = [(get_device("1080ti"), Conditions())]
    graph = [graphs["resnet18"]]
    assert predictor.latencies(graph, case, ["nowhere"])[0] == predictor.latencies(graph, case)[0]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"source": "missing.onnx"}, ModelFileError),
        ({"source": b"junk"}, ModelFileError),
        ({"device": "no such card"}, DeviceError),
        ({"batch": 0}, ModelFileError),
        ({"phase": "sideways"}, GnnperfError),
    ],
)
def test_what_cannot_be_predicted_raises_what_is_documented(predictor, arguments, error):
    with pytest.raises(error):
        predictor.predict(**({"source": zoo.build("lenet5")} | arguments))


@pytest.mark.parametrize("name", ["network.onnx", "predictor.json"])
@pytest.mark.parametrize("content", [None, b"", b"junk", b"[]", b'{"domain": {"x": 1}, "campaigns": []}'])
def test_a_damaged_predictor_is_one_line(tmp_path, name, content):
    folder = tmp_path / "predictor"
    shutil.copytree(SHIPPED, folder)
    assert Predictor.load(folder).domain == Predictor.load().domain
    (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
    with pytest.raises(GnnperfError) as error:
        Predictor.load(folder)
    assert str(folder) in str(error.value) and "\n" not in str(error.value)


def test_a_network_with_other_inputs_is_refused_when_loaded(tmp_path):
    folder = tmp_path / "predictor"
    shutil.copytree(SHIPPED, folder)
    model = zoo.build("lenet5")
    zoo.fill_weights(model, seed=0)
    onnx.save(model, folder / "network.onnx")
    with pytest.raises(GnnperfError, match=r"network\.onnx is not a network that"):
        Predictor.load(folder)


def test_a_condition_that_does_not_exist_is_one_line(predictor):
    with pytest.raises(GnnperfError, match="'x' is not a valid Stack"):
        predictor.predict(zoo.build("lenet"), stack="x")


def test_a_graph_has_its_shapes_already(predictor):
    graph = read_graph(zoo.build("lenet"))
    assert predictor.predict(graph).batch == 1
    with pytest.raises(ModelFileError, match="give batch"):
        predictor.predict(graph, batch=8)


def test_a_graph_without_operators_is_refused_and_no_cases_are_no_predictions(predictor):
    with pytest.raises(ModelFileError, match="no operators"):
        predictor.predict(OpGraph("empty"))
    assert predictor.predict_graph(read_graph(zoo.build("lenet")), []) == []


# ---- physics that the shipped weights have to respect ----


def latencies(predictor, graphs, device, **conditions):
    return predictor.latencies(graphs, [(device, Conditions(**conditions))] * len(graphs))[0]


def twice_as_fast(device):
    fields = ("clock_mhz", "peak_fp32_tflops", "tensor_fp16_tflops", "bandwidth_gb_s", "pcie_gb_s")
    doubled = {name: 2 * (getattr(device, name) or 0) for name in fields}
    return dataclasses.replace(device, slug="faster", base=device.slug, **doubled)


# A training step of a launch-bound network may still fall a little where its products change their regime.
@pytest.mark.parametrize(("phase", "smallest"), [(Phase.INFERENCE, 0.98), (Phase.TRAINING, 0.8)])
def test_latency_grows_with_the_batch(predictor, graphs, phase, smallest):
    falls = {}
    for name in DEVICES:
        for network, graph in graphs.items():
            times = latencies(predictor, [graph.at_batch(b) for b in BATCHES], get_device(name), phase=phase)
            falls[network, name] = (times[1:] / times[:-1]).min()
    assert min(falls.values()) > smallest, {key: value for key, value in falls.items() if value <= smallest}


@pytest.mark.parametrize("name", DEVICES)
def test_large_batches_take_time_in_proportion(predictor, graphs, name):
    for network in ("vgg16", "resnet50", "densenet121", "bert_base"):
        at_batch = [graphs[network].at_batch(batch) for batch in (64, 128)]
        one, two = latencies(predictor, at_batch, get_device(name))
        assert 1.6 < two / one < 2.2, network


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("batch", [1, 32])
def test_a_training_step_takes_at_least_a_forward_pass(predictor, graphs, name, batch):
    at_batch = [graph.at_batch(batch) for graph in graphs.values()]
    device = get_device(name)
    inference, forward, backward, training = (
        latencies(predictor, at_batch, device, phase=phase)
        for phase in (Phase.INFERENCE, Phase.FORWARD, Phase.BACKWARD, Phase.TRAINING)
    )
    assert (training >= forward).all() and (training >= backward).all() and (training >= inference).all()
    assert (training <= 9 * inference).all()  # inference knows neither batch statistics nor gradients


@pytest.mark.parametrize("batch", [1, 32])
def test_a_device_twice_as_fast_in_every_respect_is_never_slower(predictor, graphs, batch):
    at_batch = [graph.at_batch(batch) for graph in graphs.values()]
    slower = {}
    for name in DEVICES:
        device = get_device(name)
        for phase in (Phase.INFERENCE, Phase.TRAINING):
            fast = latencies(predictor, at_batch, twice_as_fast(device), phase=phase)
            ratios = fast / latencies(predictor, at_batch, device, phase=phase)
            slower |= {
                (network, name): ratio for network, ratio in zip(graphs, ratios, strict=True) if ratio > 1 + 1e-4
            }
    assert not slower


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_twice_as_fast_is_faster_where_the_device_is_the_limit(predictor, graphs, name):
    at_batch = [graphs[network].at_batch(64) for network in ("vgg16", "resnet50", "densenet121", "bert_base")]
    ratios = latencies(predictor, at_batch, twice_as_fast(get_device(name))) / latencies(
        predictor, at_batch, get_device(name)
    )
    assert (ratios < 0.75).all() and (ratios > 0.45).all()


def test_large_batches_are_within_reach_of_the_roofline(predictor, graphs):
    from gnnperf.devices.roofline import graph_roofline_ms

    device = get_device("1080ti")
    for name in ("vgg16", "resnet50", "densenet121", "inception_v3", "bert_base"):
        graph = graphs[name].at_batch(64)
        ratio = latencies(predictor, [graph], device)[0] / graph_roofline_ms(graph, device, Precision.FP32)
        assert 0.5 < ratio < 5, (name, ratio)


def test_intervals_without_the_measured_networks_are_one_line(tmp_path):
    folder = shutil.copytree(resource("pretrained/base"), tmp_path / "base")
    (folder / "measured.json").unlink()
    with pytest.raises(GnnperfError, match=r"measured\.json is missing"):
        Predictor.load(folder)


def test_a_device_that_starts_from_a_measured_one_is_predicted_like_it(predictor, graphs):
    base = get_device("1080ti")
    own = dataclasses.replace(base, slug="mine", name="mine", base="1080ti")
    at_batch = [graphs["resnet50"].at_batch(8)]
    assert latencies(predictor, at_batch, own) == latencies(predictor, at_batch, base)
    alone = dataclasses.replace(own, base="")
    assert latencies(predictor, at_batch, alone) != latencies(predictor, at_batch, base)
