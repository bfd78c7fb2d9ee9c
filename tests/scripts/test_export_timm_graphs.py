"""The export script on a network of its own kind: timm itself is no dependency."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from torch import nn

from gnnperf.graph import read_graph, to_arrays

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "export_timm_graphs.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("export_timm_graphs", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def create_model(name, exportable):  # no img_size: as timm's convolutional networks
    layers = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(8, 10))


def test_graphs_have_the_measured_size_and_no_folded_layers(script):
    timm = SimpleNamespace(create_model=create_model)
    graphs = {batch: read_graph(script.export(timm, "timm/little@16", batch)) for batch in (1, 2)}
    assert [node.op_type for node in graphs[1].nodes[:3]] == ["Conv", "BatchNormalization", "Gelu"]
    arrays = {batch: to_arrays(graph) for batch, graph in graphs.items()}
    assert arrays[1].column("macs").sum() == 16 * 16 * 27 * 8 + 80
    assert (arrays[1].at_batch(2).node == arrays[2].node).all()


def test_counts_that_differ_are_told(script):
    arrays = to_arrays(read_graph(script.export(SimpleNamespace(create_model=create_model), "timm/little@224")))
    parameters = arrays.column("weight_bytes").sum() / 4e6
    assert script.check_counts(arrays, pd.Series({"gmacs": 0.0108, "parameters": parameters})) == ""
    assert "GMACs where timm says 0.9" in script.check_counts(
        arrays, pd.Series({"gmacs": 0.9, "parameters": parameters})
    )


def test_nothing_is_initialised(script):
    with script.WithoutInitialisation():
        weight = nn.Parameter(torch.ones(4))
        buffer = torch.ones(4)
        nn.init.normal_(weight)
        nn.init.zeros_(weight)
        buffer.mul_(2)
    assert weight.tolist() == [1] * 4 and buffer.tolist() == [2] * 4  # buffers may index
