"""Layers timed by themselves beside operators: reading, matching, ranking."""

from types import SimpleNamespace

import numpy as np
import pytest

from gnnperf import Predictor, zoo
from gnnperf.datasets.readers.resperfnet import NETWORKS
from gnnperf.errors import DataError
from gnnperf.evaluation.breakdown import (
    ComparedLayer,
    Copy,
    class_shares,
    compare_layers,
    compare_networks,
    fit_copy,
    layer_nodes,
    match_layers,
    product_share,
    rank_agreement,
    read_layers,
    summarise_layers,
)
from gnnperf.graph import read_graph

HEADER = (
    "layer,name,operation,batchsize,matsize,kernelsize,channels_in,channels_out,strides,padding,activation_fct,"
    "use_bias,poolsize,time_median\n"
)
CONV, POOL, DENSE = (f"<class 'keras.layers.{name}'>" for name in ("c.Conv2D", "p.MaxPooling2D", "core.Dense"))
LENET = (
    f"1,conv2d_1,{CONV},4,28,5,1,32,1,0,0,1,,0.4\n"
    f"2,pool_1,{POOL},4,24,,32,,2,0,,,2,0.2\n"
    f"3,conv2d_2,{CONV},4,12,5,32,64,1,0,0,1,,0.3\n"
    f"4,pool_2,{POOL},4,8,,64,,2,0,,,2,0.15\n"
    f"5,dense_1,{DENSE},4,1,,1024,100,,,1,,,0.12\n"
    f"6,dense_2,{DENSE},4,1,,100,10,,,1,,,0.11\n"
)


@pytest.fixture
def lenet(tmp_path):
    (tmp_path / "lenet").mkdir()
    path = tmp_path / "lenet" / "lenet_4.csv"
    path.write_text(HEADER + LENET)
    return path


@pytest.fixture(scope="module")
def predictor():
    return Predictor.load()


def layers(predicted, measured, output_mb):
    return [
        ComparedLayer("made", 1, str(i), 1, *values)
        for i, values in enumerate(zip(measured, predicted, output_mb, strict=True))
    ]


def test_every_layer_finds_its_operator(lenet):
    found = read_layers(lenet.parents[1], "lenet", 4)
    graph = read_graph(zoo.build("lenet", batch=4))
    positions = match_layers(graph, found)
    assert [graph.nodes[p].op_type for p in positions] == ["Conv", "MaxPool", "Conv", "MaxPool", "Gemm", "Gemm"]
    assert positions == sorted(positions)


def test_layers_of_a_kind_are_taken_in_their_order_and_others_have_no_operator():
    graph = read_graph(zoo.build("vgg16"))
    same = SimpleNamespace(signature=("conv", 512, 512, 3, 14))
    positions = match_layers(graph, [same] * 4)
    assert positions[3] is None and positions[:3] == sorted(set(positions[:3]))
    assert {graph.nodes[p].output_shape for p in positions[:3]} == {(1, 512, 14, 14)}
    # 7x1 convolutions were run as 7x7, of which Inception has none at that size.
    assert match_layers(read_graph(zoo.build("inception_v3")), [SimpleNamespace(signature=("conv", 128, 128, 7, 17))]) \
        == [None]  # fmt: skip


def test_a_layer_takes_its_activation_along_but_no_addition():
    vgg, resnet = (read_graph(zoo.build(name)) for name in ("vgg16", "caffe_resnet50"))
    assert [vgg.nodes[n].op_type for n in layer_nodes(vgg, 0)] == ["Conv", "Relu"]
    assert [resnet.nodes[n].op_type for n in layer_nodes(resnet, 0)] == ["Conv", "Relu"]  # behind a normalisation
    before_addition = next(i for i, node in enumerate(resnet.nodes) if node.name == "conv_3")
    assert layer_nodes(resnet, before_addition) == [before_addition]


@pytest.mark.parametrize("content", ["", "layer,name\n1,x\n", HEADER + "1,x,<class 'keras.Dropout'>" + "," * 11 + "\n"])
def test_damaged_measurements_are_one_line(lenet, content):
    lenet.write_text(content)
    with pytest.raises(DataError, match=r"lenet_4\.csv is damaged"):
        read_layers(lenet.parents[1], "lenet", 4)


def test_a_missing_folder_is_one_line(tmp_path, predictor):
    with pytest.raises(DataError, match="give the folder models_1080ti"):
        read_layers(tmp_path / "nowhere", "vgg16", 1)
    with pytest.raises(DataError, match="two networks or more"):
        compare_networks(predictor, tmp_path, ["vgg16"], [1])


def test_what_a_session_adds_is_found_again():
    random = np.random.default_rng(0)
    predicted, output_mb = random.uniform(0.1, 5, 40), random.uniform(1, 100, 40)
    copy = fit_copy(layers(predicted, 0.7 * predicted + 0.09 * output_mb + 0.2, output_mb))
    assert (copy.scale, copy.ms_per_mb, copy.call_ms) == pytest.approx((0.7, 0.09, 0.2))


def test_copies_explain_a_ranking_that_they_made():
    predicted, output_mb = np.arange(1.0, 9.0), np.arange(80.0, 0.0, -10.0)
    summary = summarise_layers(layers(predicted, predicted + output_mb, output_mb), Copy(1, 1, 0))
    assert summary["as_measured"]["kendall_tau"] == pytest.approx(-1) and summary["as_measured"]["top"] == 2
    for name in ("with_copy", "without_copy"):
        assert summary[name] == pytest.approx({"kendall_tau": 1, "spearman_rho": 1, "top": 5})
    assert summary["mape_with_copy"] == pytest.approx(0)
    assert summary["copy_share"] == pytest.approx(output_mb.sum() / (predicted + output_mb).sum())


def test_top_five_counts_what_both_have():
    assert rank_agreement(range(10), range(10))["top"] == 5
    assert rank_agreement(range(10), [9, *range(9)])["top"] == 4


def test_operators_of_lenet_are_compared(lenet, predictor):
    compared, unmatched = compare_layers(predictor, lenet.parents[1], "lenet", 4)
    assert [layer.measured_ms for layer in compared] == [0.4, 0.2, 0.3, 0.15, 0.12, 0.11] and not unmatched
    prediction = predictor.predict(zoo.build("lenet"), batch=4, stack="tensorflow-1")
    assert 0 < sum(layer.predicted_ms for layer in compared) <= prediction.latency_ms
    assert compared[0].output_mb == pytest.approx(4 * 32 * 24 * 24 * 4 / 1e6)


@pytest.mark.parametrize("network", NETWORKS)
def test_the_real_layers_have_operators(shared, network):
    folder = shared / "data" / "resperfnet" / "models_1080ti"
    positions = match_layers(read_graph(zoo.build(NETWORKS[network])), read_layers(folder, network, 1))
    known = [position for position in positions if position is not None]
    assert len(known) == len(set(known))
    assert len(known) == len(positions) if network != "inceptionv3" else len(known) > 60


# ---- what has to hold of the shipped predictor ----


def test_operators_sum_to_the_latency(predictor):
    for network, batch in (("vgg16", 16), ("resnet50", 1), ("bert_base", 2)):
        prediction = predictor.predict(zoo.build(network), batch=batch)
        assert 0.9 < sum(operator.share for operator in prediction.operators) <= 1 + 1e-5, network


def test_products_dominate_where_they_do_the_work(predictor):
    bert = predictor.predict(zoo.build("bert_base"), batch=32, stack="tensorflow-1")
    assert product_share(bert) > 0.6 and next(iter(class_shares(bert))) == "gemm"
    vgg = predictor.predict(zoo.build("vgg16"), batch=16)
    assert product_share(vgg) > 0.8 and next(iter(class_shares(vgg))) == "conv"


def test_the_largest_convolutions_of_vgg16_lead(predictor):
    prediction = predictor.predict(zoo.build("vgg16"), batch=16)
    graph = read_graph(zoo.build("vgg16", batch=16))
    macs = sorted(graph.nodes, key=lambda node: -node.macs)
    largest = {node.name for node in macs if node.macs == macs[0].macs}
    assert {operator.name for operator in prediction.operators[:5]} <= largest
