"""What the distance to the training data sees, and what it does not."""

import dataclasses
import json

import numpy as np
import pytest

from gnnperf.conditions import Conditions, Phase, Precision, Stack
from gnnperf.datasets.graph_building import build_arrays
from gnnperf.devices import get_device
from gnnperf.graph import GraphArrays
from gnnperf.similarity import DESCRIPTOR_FIELDS, MeasuredNetwork, MeasuredNetworks, describe

DEVICE, INFERENCE = get_device("1080ti"), Conditions()
CNNS = {"resnet18": "resnet", "resnet50": "resnet", "densenet121": "densenet", "squeezenet1_1": "squeezenet"}


@pytest.fixture(scope="module")
def graphs():
    return {name: build_arrays(name) for name in (*CNNS, "resnet34", "bert_base", "mobilenet_v2")}


def field(descriptor, name):
    return descriptor[DESCRIPTOR_FIELDS.index(name)]


@pytest.fixture(scope="module")
def measured(graphs):
    networks = [MeasuredNetwork(name, family, "pytorch", 1, "inference") for name, family in CNNS.items()]
    return MeasuredNetworks(networks, np.stack([describe(graphs[name], DEVICE, INFERENCE) for name in CNNS]))


def test_the_order_of_operators_does_not_matter(graphs):
    graph = graphs["densenet121"]
    order = np.random.default_rng(0).permutation(graph.num_nodes)
    shuffled = GraphArrays(
        graph.op_class[order], graph.node[order], np.argsort(order)[graph.edge_index].astype(np.int32),
        graph.edge_bytes, graph.input_bytes, graph.output_bytes, graph.batch,
    )  # fmt: skip
    np.testing.assert_allclose(describe(shuffled, DEVICE, INFERENCE), describe(graph, DEVICE, INFERENCE), rtol=1e-9)


def test_every_descriptor_is_finite_and_shares_sum_to_one(graphs):
    shares = [i for i, name in enumerate(DESCRIPTOR_FIELDS) if name.startswith("share_")]
    for graph in graphs.values():
        for batch in (1, 4096):
            descriptor = describe(graph.at_batch(batch), DEVICE, INFERENCE)
            assert np.isfinite(descriptor).all()
            assert descriptor[shares].sum() == pytest.approx(1 / 0.25)


def test_a_larger_batch_is_larger_work_less_bound_by_launches(graphs):
    one, many = (describe(graphs["resnet18"].at_batch(batch), DEVICE, INFERENCE) for batch in (1, 64))
    assert field(many, "log_batch") > field(one, "log_batch") == 0
    assert field(many, "log_macs_per_operator") - field(one, "log_macs_per_operator") == pytest.approx(3, abs=0.01)
    assert field(many, "launch_share") < field(one, "launch_share")
    assert field(many, "log_operators") == field(one, "log_operators")


def test_conditions_enter_by_what_they_do_to_the_work(graphs):
    graph = graphs["resnet18"]
    plain = describe(graph, DEVICE, INFERENCE)
    np.testing.assert_array_equal(describe(graph, DEVICE, Conditions(stack=Stack.CAFFE)), plain)
    training = [describe(graph, DEVICE, Conditions(phase)) for phase in (Phase.TRAINING, Phase.BACKWARD)]
    np.testing.assert_array_equal(*training)
    assert np.flatnonzero(training[0] != plain).tolist() == [DESCRIPTOR_FIELDS.index("training")]
    fast = dataclasses.replace(DEVICE, peak_fp32_tflops=100.0, bandwidth_gb_s=4000.0)
    assert field(describe(graph, fast, INFERENCE), "launch_share") > field(plain, "launch_share")


def test_a_measured_network_is_at_no_distance_and_its_likes_are_near(graphs, measured):
    names = list(CNNS)
    described = np.stack([describe(graphs[name], DEVICE, INFERENCE) for name in (*names, "resnet34", "bert_base")])
    nearest, distance = measured.distances(described)
    assert nearest[:4].tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(distance[:4], 0, atol=1e-6)
    assert CNNS[names[nearest[4]]] == "resnet" and distance[4] < 0.5
    near, far = (measured.similarity(nearest[i], distance[i]) for i in (4, 5))
    assert near.words == "close to" and not near.is_far
    assert far.is_far and far.distance > 2
    assert str(near).startswith(
        "close to the training data: the nearest measured network is resnet18 (pytorch, batch 1"
    )


def test_words_follow_the_training_set(measured):
    assert measured.far >= 1
    assert [measured.similarity(0, d).words for d in (0.5, 0.51, measured.far, measured.far * 1.01)] == [
        "close to", "at the edge of", "at the edge of", "far from",
    ]  # fmt: skip


def test_unit_is_the_median_between_families_by_hand():
    networks = [MeasuredNetwork(f"m{i}", family, "pytorch", 1, "inference") for i, family in enumerate("aaab")]
    descriptors = np.zeros((4, len(DESCRIPTOR_FIELDS)))
    descriptors[:, 0] = [0.0, 1.0, 2.0, 6.0]
    found = MeasuredNetworks(networks, descriptors)
    # To the other family: 6, 5, 4 from a (a third each) and 4 from b (all of it).
    assert (found.unit, found.far) == (4.0, 1.5)
    alone = MeasuredNetworks(networks[:3], descriptors[:3])
    assert alone.unit > 0 and alone.far >= 1


def test_json_round_trip_and_other_versions(measured):
    text = measured.to_json()
    again = MeasuredNetworks.from_json(text)
    assert again.networks == measured.networks
    np.testing.assert_allclose(again.descriptors, measured.descriptors, atol=5e-4)
    assert again.unit == pytest.approx(measured.unit, rel=1e-5) and again.far == pytest.approx(measured.far, rel=1e-5)
    content = json.loads(text)
    assert MeasuredNetworks.from_json(json.dumps(content | {"format": 99})) is None
    assert MeasuredNetworks.from_json(json.dumps(content | {"fields": ["x"]})) is None


@pytest.mark.parametrize(
    "change",
    [{"networks": []}, {"networks": [["a", "b", "c", 1, "inference", [1.0]]]}, {"networks": [[1]]}, {"unit": 0},
     {"unit": float("nan")}, {"far": None}, {"networks": 3}],
)  # fmt: skip
def test_damaged_content_is_refused(measured, change):
    with pytest.raises((ValueError, TypeError, KeyError)):
        MeasuredNetworks.from_json(json.dumps(json.loads(measured.to_json()) | change))


def test_precision_counts_where_it_changes_the_work(graphs):
    v100 = get_device("v100-pcie")
    single, half = (
        describe(graphs["resnet50"], v100, Conditions(precision=p)) for p in (Precision.FP32, Precision.FP16)
    )
    assert field(half, "launch_share") > field(single, "launch_share")
