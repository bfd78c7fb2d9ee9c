"""What lies outside of the training data is said, and nothing else."""

import dataclasses

import numpy as np
import pytest

from gnnperf.conditions import Conditions, Phase, Precision, Stack
from gnnperf.datasets.graph_building import build_arrays
from gnnperf.devices import get_device
from gnnperf.domain import Domain

CLASSES = ("conv", "activation", "pooling", "data_movement", "gemm", "view", "global_pooling", "batch_norm",
           "elementwise", "softmax", "reduction")  # fmt: skip
DOMAIN = Domain(
    op_classes=CLASSES,
    devices=("1080ti",),
    stacks=("pytorch",),
    precisions=("fp32",),
    phases=("inference",),
    batch=(1, 32),
    macs=(1e8, 1e12),
    operators=(20, 500),
)


@pytest.fixture(scope="module")
def graph():
    return build_arrays("squeezenet1_1")


def warnings(graph, domain=DOMAIN, device="1080ti", node_ms=None, **conditions):
    node_ms = np.ones(graph.num_nodes) if node_ms is None else node_ms
    return domain.warnings(graph, node_ms, get_device(device), Conditions(**conditions))


def test_inside_the_domain_nothing_is_said(graph):
    assert warnings(graph) == []


def test_description_survives_json():
    import json

    assert Domain.from_dict(json.loads(json.dumps(DOMAIN.to_dict()))) == DOMAIN


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({"device": "v100"}, "V100"),
        ({"stack": Stack.THEANO}, "stack theano was not measured"),
        ({"precision": Precision.FP16}, "precision fp16 was not measured"),
        ({"phase": Phase.TRAINING}, "no training latencies"),
        ({"phase": Phase.BACKWARD}, "no training latencies"),
    ],
)
def test_each_condition_outside_is_said_once(graph, case, said):
    (sentence,) = warnings(graph, **case)
    assert said in sentence


def test_sizes_far_outside_are_said_and_a_little_outside_is_not(graph):
    assert warnings(graph.at_batch(40)) == []
    (sentence,) = warnings(graph.at_batch(64))
    assert "64 batch, at most 32" in sentence
    small = dataclasses.replace(DOMAIN, macs=(1e10, 1e12), operators=(1, 2))
    sentences = warnings(graph, small)
    assert len(sentences) == 2 and "MACs, at least 1e+10" in sentences[0] and "at most 2" in sentences[1]


def test_an_unknown_class_is_said_where_it_takes_time(graph):
    without = dataclasses.replace(DOMAIN, op_classes=tuple(name for name in CLASSES if name != "conv"))
    (sentence,) = warnings(graph, without)
    assert "conv operators" in sentence and "far from the training data" in sentence
    from gnnperf.graph import OpClass

    idle = np.where(graph.op_class == OpClass.CONV, 1e-6, 1.0)
    assert warnings(graph, without, node_ms=idle) == []
    assert warnings(graph, without, node_ms=np.zeros(graph.num_nodes)) == []
