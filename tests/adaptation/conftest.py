"""Predictions of the shipped network for a pool of networks, taken apart."""

import pytest

from gnnperf import zoo
from gnnperf.adaptation.components import take_apart
from gnnperf.conditions import Conditions, Phase, Window
from gnnperf.devices import get_device
from gnnperf.graph import read_graph, to_arrays
from gnnperf.predictor import Predictor

CELLS = ("012340", "111111", "222222", "333333", "012012", "321321", "131313", "240240")
NETWORKS = (
    "resnet18", "mobilenet_v2", "squeezenet1_1", "densenet121", "lenet5", "vgg11",
    *(f"nasbench201/{cell}" for cell in CELLS),
)  # fmt: skip
CONDITIONS = (
    Conditions(),
    Conditions(window=Window.PAGEABLE_COPY),
    Conditions(phase=Phase.TRAINING),
)


@pytest.fixture(scope="session")
def predictor() -> Predictor:
    return Predictor.load()


@pytest.fixture(scope="session")
def cases():
    """Graphs at batches 1 and 64, the device and conditions of each, and the networks' names."""
    graphs, conditions, names = [], [], []
    for number, name in enumerate(NETWORKS):
        structure = to_arrays(read_graph(zoo.build(name), batch=1))
        for batch in (1, 64):
            graphs.append(structure.at_batch(batch))
            conditions.append(CONDITIONS[number % 3] if name != "lenet5" else CONDITIONS[0])
            names.append(name)
    return graphs, [(get_device("2080ti"), each) for each in conditions], names


@pytest.fixture(scope="session")
def parts(predictor, cases):
    graphs, devices, _ = cases
    return take_apart(predictor, graphs, devices)
