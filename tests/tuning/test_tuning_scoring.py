import numpy as np
import pytest
import torch

from gnnperf.domain import Domain
from gnnperf.evaluation.scoring import predict
from gnnperf.nn.network import LatencyNetwork, NetworkConfig
from gnnperf.predictor import Predictor
from gnnperf.training.export import INPUTS
from gnnperf.tuning.scoring import ValidationRows, phase_means, weighted_mape


class TorchSession:
    """Runs a network where an exported one is expected."""

    def __init__(self, network):
        self.network = network.eval()

    @torch.no_grad()
    def run(self, outputs, feeds):
        prediction = self.network(*(torch.from_numpy(np.asarray(feeds[name])) for name in INPUTS))
        return [prediction.latency_ms.numpy(), prediction.node_ms.numpy()]


@pytest.fixture
def network(tiny_dataset):
    torch.manual_seed(0)
    campaigns = ("campaign-1080ti/1080ti", "campaign-v100-pcie-32gb/v100-pcie-32gb")
    config = NetworkConfig(width=16, depth=1, dropout=0.5, campaigns=campaigns, devices=("1080ti", "v100-pcie-32gb"))
    network = LatencyNetwork(config)
    for parameter in network.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)  # effects and corrections of which something is to be seen
    return network


def test_predictions_are_those_of_the_predictor_for_a_user_s_file(tiny_dataset, network, monkeypatch):
    from gnnperf.tuning import scoring

    monkeypatch.setattr(scoring, "_CHUNK", 7)
    rows = tiny_dataset.frame[tiny_dataset.frame["kind"] == "model"]
    nothing = Domain((), (), (), (), (), (1, 1), (1.0, 1.0), (1, 1))
    predictor = Predictor(TorchSession(network), nothing, network.config.campaigns, network.config.devices)
    expected = predict(rows, tiny_dataset, predictor, with_campaign=False)
    with_campaign = predict(rows, tiny_dataset, predictor, with_campaign=True)
    assert np.abs(with_campaign / expected - 1).max() > 0.01
    network.train()
    found = ValidationRows(rows, tiny_dataset.graphs).predict(network)
    assert network.training
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_mape_is_by_family_and_phase_in_per_cent(tiny_dataset, network):
    frame = tiny_dataset.frame
    rows = frame[frame["family"].isin(["resnet", "densenet"]) & (frame["device"] == "1080ti")]
    scored = ValidationRows(rows, tiny_dataset.graphs)
    part = ((rows["family"] == "resnet") & (rows["phase"] == "training")).to_numpy()
    ape = np.abs(scored.predict(network) / rows["latency_ms"].to_numpy() - 1)[part]
    found = scored.mape(network)
    assert found["resnet"]["training"] == pytest.approx(100 * ape.mean())
    assert {family: set(phases) for family, phases in found.items()} == {
        "resnet": {"inference", "training"}, "densenet": {"inference", "training"},
    }  # fmt: skip
    assert scored.predict_cpu_ms(network) > 0


def test_families_count_alike_and_a_phase_by_its_weight():
    mape = {"a": {"inference": 10.0, "training": 4.0}, "b": {"inference": 30.0}}
    assert phase_means(mape) == {"inference": 20.0, "training": 4.0}
    assert weighted_mape(mape, 0.5) == 12.0
    assert weighted_mape(mape, 0.75) == 16.0
    assert weighted_mape({"b": {"inference": 30.0}}, 0.25) == 30.0
    assert np.isnan(weighted_mape({"b": {"inference": 30.0}}, 0.0))
