"""Leave one device out."""

import numpy as np
import pytest

from gnnperf.datasets.dataset import Dataset
from gnnperf.evaluation.benchmark import cross_device as module
from gnnperf.evaluation.benchmark.prediction_cache import PredictionCache

DEVICES = {"1080ti", "v100-pcie-32gb"}


class Recorder:
    """Remembers the devices that it was fitted on; every layer takes 1 ms and every network 2."""

    fitted = []

    def fit(self, rows, graphs):
        self.fitted.append(set(rows["device"]))
        assert set(rows["kind"]) == {"layer"}
        return self

    def layer_latencies(self, rows):
        return np.ones(len(rows))

    def predict(self, graph, device, batch, phase):
        return 2.0


@pytest.fixture
def layers_and_networks(tiny_dataset, monkeypatch):
    Recorder.fitted = []
    monkeypatch.setattr(module, "METHODS", ("recorder",))
    monkeypatch.setattr(module, "BASELINES", {"recorder": Recorder})
    return Dataset(None, tiny_dataset.frame.assign(source="justus2018"), tiny_dataset.graphs)


def test_each_device_is_predicted_by_a_fit_on_the_others(layers_and_networks, tmp_path):
    records, notes = module.cross_device(layers_and_networks, None, PredictionCache(tmp_path))
    assert Recorder.fitted == [{"v100-pcie-32gb"}, {"1080ti"}]
    assert {(record["device"], record["rows_of"], record["phase"]) for record in records} == {
        (device, rows_of, phase)
        for device in DEVICES
        for rows_of in ("layers", "networks")
        for phase in ("inference", "training")
    }
    frame = layers_and_networks.frame
    layers = frame[(frame["device"] == "1080ti") & (frame["kind"] == "layer") & (frame["phase"] == "inference")]
    (record,) = (r for r in records if (r["device"], r["rows_of"], r["phase"]) == ("1080ti", "layers", "inference"))
    assert record["rows"] == len(layers)
    assert record["recorder"] == pytest.approx((1 / layers["latency_ms"] - 1).abs().mean())
    assert record["gnnperf"] is None and len(notes) == 2


def test_nothing_is_fitted_twice(layers_and_networks, tmp_path):
    first, _ = module.cross_device(layers_and_networks, None, PredictionCache(tmp_path))
    Recorder.fitted = []
    again, _ = module.cross_device(layers_and_networks, None, PredictionCache(tmp_path))
    assert again == first and not Recorder.fitted
