"""Networks taken apart."""

import numpy as np

from gnnperf.evaluation.benchmark.single_layers import single_layers
from gnnperf.graph import OpClass


def graph_of(dataset, model):
    return dataset.graphs[dataset.frame.loc[dataset.frame["model"] == model, "graph_key"].iloc[0]]


def test_every_operator_that_runs_is_in_one_layer(end_to_end):
    graph = graph_of(end_to_end, "resnet18")
    layers = single_layers(graph)
    runs = int((graph.op_class != OpClass.VIEW).sum())
    assert sum(layer.num_nodes for layer in layers) == runs
    for name in ("macs", "output_bytes", "weight_bytes"):
        expected = graph.column(name)[graph.op_class != OpClass.VIEW].sum()
        assert np.isclose(sum(layer.column(name).sum() for layer in layers), expected)


def test_an_activation_belongs_to_the_product_before_it(end_to_end):
    layers = single_layers(graph_of(end_to_end, "vgg16"))
    convolutions = [layer for layer in layers if layer.op_class[0] == OpClass.CONV]
    assert len(convolutions) == 13
    for layer in convolutions:
        assert layer.op_class.tolist() == [OpClass.CONV, OpClass.ACTIVATION]
        assert layer.edge_index.tolist() == [[0], [1]]
        assert layer.output_bytes == layer.column("output_bytes")[1]


def test_an_output_that_is_read_twice_keeps_its_activation_apart(end_to_end):
    # In a residual block the sum behind an activation is read by the next block's convolution and by its shortcut.
    layers = single_layers(graph_of(end_to_end, "resnet18"))
    assert [layer.op_class.tolist() for layer in layers].count([OpClass.CONV]) > 0
