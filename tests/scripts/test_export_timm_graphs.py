"""The export script on a network of its own kind: timm itself is no dependency."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

import export_timm_graphs
from gnnperf.graph import to_arrays


def create_model(name, exportable):  # no img_size: as timm's convolutional networks
    layers = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(8, 10))


@pytest.fixture(scope="module")
def model():
    return export_timm_graphs.create(SimpleNamespace(create_model=create_model), "timm/little@16")


def test_graphs_have_the_measured_size_and_no_folded_layers(model):
    graphs = {batch: export_timm_graphs.export(model, 16, batch) for batch in (1, 2)}
    assert [node.op_type for node in graphs[1].nodes[:3]] == ["Conv", "BatchNormalization", "Gelu"]
    arrays = {batch: to_arrays(graph) for batch, graph in graphs.items()}
    assert arrays[1].column("macs").sum() == 16 * 16 * 27 * 8 + 80
    assert arrays[1].column("weight_bytes").sum() / 4 == 27 * 8 + 8 + 4 * 8 + 8 * 10 + 10
    assert (arrays[1].at_batch(2).node == arrays[2].node).all()


def test_what_weights_alone_decide_is_no_work():
    class Standardised(nn.Conv2d):
        def forward(self, x):
            return self._conv_forward(x, self.weight - self.weight.mean((1, 2, 3), keepdim=True), self.bias)

    graph = export_timm_graphs.export(Standardised(3, 8, 3, bias=False).eval(), 16)
    assert [node.op_type for node in graph.nodes] == ["Conv"]
    assert graph.input_bytes == 3 * 16 * 16 * 4


def test_counts_that_differ_are_told(model):
    export_timm_graphs.check_parameters(model, 0.0003)
    with pytest.raises(ValueError, match=r"has 0\.00 M parameters, but 11\.00 M were timed"):
        export_timm_graphs.check_parameters(model, 11.0)
    arrays = to_arrays(export_timm_graphs.export(model, 224))
    assert export_timm_graphs.check_macs(arrays, 0.0108) == "" == export_timm_graphs.check_macs(arrays, float("nan"))
    assert export_timm_graphs.check_macs(arrays, 0.9) == "0.01 GMACs where timm says 0.90"


def test_nothing_is_initialised():
    with export_timm_graphs.WithoutInitialisation():
        weight = nn.Parameter(torch.ones(4))
        buffer = torch.ones(4)
        nn.init.normal_(weight)
        nn.init.zeros_(weight)
        buffer.mul_(2)
    assert weight.tolist() == [1] * 4 and buffer.tolist() == [2] * 4  # buffers may index
