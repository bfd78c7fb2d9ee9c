"""Reports and model cards, with a stand-in for the network whose errors are known."""

import json

import numpy as np
import pytest
import torch

from gnnperf.cli.accuracy_tables import accuracy_tables
from gnnperf.conditions import Phase
from gnnperf.devices.roofline import graph_roofline_ms
from gnnperf.evaluation import card
from gnnperf.evaluation.card import CARD_FILE, METRICS_FILE, PREDICTIONS_FILE, write_card
from gnnperf.evaluation.references import analytic_latencies, linear_latencies
from gnnperf.evaluation.report import report
from gnnperf.evaluation.scoring import ROW_COLUMNS, score_rows
from gnnperf.training.config import DataConfig
from gnnperf.training.predictor_files import training_domain
from gnnperf.training.split import split_rows


class KnownPredictor:
    """Says the truth of ``tiny_dataset`` times 1.1, times 1.2 where the campaign is not told."""

    def latencies(self, graphs, cases, campaigns=None):
        factor = 1.1 if campaigns is not None else 1.2
        passes = [1.5 if conditions.phase == Phase.INFERENCE else 7.5 for _, conditions in cases]
        return np.array([
            factor * (part * graph_roofline_ms(graph, device) + 0.1)
            for graph, (device, _), part in zip(graphs, cases, passes, strict=True)
        ]), None  # fmt: skip

    def intervals(self, graphs, cases, latency_ms):
        return latency_ms / 1.5, latency_ms * 1.5


@pytest.fixture
def split(tiny_dataset):
    return split_rows(tiny_dataset.frame, DataConfig(search_space_share=0.5), seed=0)


def test_every_row_is_scored_under_its_own_conditions(tiny_dataset, split):
    frame = tiny_dataset.frame[tiny_dataset.frame["kind"] == "model"]
    scored = score_rows("mine", frame, split.train, tiny_dataset, KnownPredictor())
    assert tuple(scored.columns) == ROW_COLUMNS and set(scored["fold"]) == {"mine"}
    np.testing.assert_allclose(scored["predicted_ms"], 1.1 * scored["latency_ms"], rtol=1e-6)
    np.testing.assert_allclose(scored["stack_only_ms"], 1.2 * scored["latency_ms"], rtol=1e-6)
    row = scored[(scored["phase"] == "training") & (scored["model"] == "vgg11")].iloc[0]
    assert row["roofline_ms"] == pytest.approx((row["latency_ms"] - 0.1) / 7.5 * 3)
    np.testing.assert_allclose(1.5 * scored["low_ms"], scored["stack_only_ms"])
    np.testing.assert_allclose(scored["high_ms"], 1.5 * scored["stack_only_ms"])
    assert scored["operator_counts_ms"].isna().all()


def test_the_linear_reference_is_fitted_on_rows_of_the_same_device_and_phase(tiny_dataset, split):
    vgg = tiny_dataset.frame[tiny_dataset.frame["model"] == "vgg11"]
    predicted = linear_latencies(split.train, vgg, tiny_dataset)
    assert np.isfinite(predicted).all()
    only = split.train[(split.train["device"] == "1080ti") & (split.train["phase"] == "inference")]
    alone = linear_latencies(only, vgg, tiny_dataset)
    known = ((vgg["device"] == "1080ti") & (vgg["phase"] == "inference")).to_numpy()
    np.testing.assert_allclose(alone[known], predicted[known])
    assert np.isnan(alone[~known]).all()


def test_the_analytic_reference_is_the_untrained_network(tiny_dataset):
    from gnnperf.nn.network import LatencyNetwork, NetworkConfig
    from gnnperf.training.samples import graph_tensors, row_conditions, row_devices

    rows = tiny_dataset.frame[tiny_dataset.frame["model"] == "resnet18"].iloc[:3]
    found = analytic_latencies(rows, tiny_dataset)
    torch.manual_seed(5)
    network = LatencyNetwork(NetworkConfig(depth=2)).eval()
    for place in range(3):
        row = rows.iloc[[place]]
        graph = tiny_dataset.graphs[row["graph_key"].iloc[0]].at_batch(int(row["batch"].iloc[0]))
        inputs = torch.from_numpy(row_devices(row)), torch.from_numpy(row_conditions(row, (), ()))
        assert found[place] == pytest.approx(network(*graph_tensors([graph]), *inputs).latency_ms.item(), rel=1e-5)


def test_held_out_families_are_reported_by_phase_and_stack_on_one_device(tiny_dataset, split):
    result = report(split, tiny_dataset, KnownPredictor())
    assert set(result.rows["device"]) == {"1080ti"} and set(result.rows["family"]) == {"lenet", "alexnet", "vgg"}
    families = result.families
    assert len(families) == 2 * 3 + 2  # phases x families, and a total a phase
    totals = families[families["family"] == "all"].set_index("phase")
    assert totals.loc["inference", "rows"] == 6
    np.testing.assert_allclose(families["mape"], 0.1, rtol=1e-6)
    np.testing.assert_allclose(families["mape_without_campaign"], 0.2, rtol=1e-6)
    np.testing.assert_allclose(families["bias"], 0.1, rtol=1e-6)


def test_search_spaces_are_reported_on_graphs_held_out(tiny_dataset, split):
    in_space = report(split, tiny_dataset, KnownPredictor()).in_space
    assert in_space["family"].tolist() == ["nasbench201"] * 2 and in_space["batch"].tolist() == [1, 8]
    assert in_space["rows"].tolist() == [6, 6]
    np.testing.assert_allclose(in_space["mape"], 0.1, rtol=1e-6)


def test_nothing_held_out_gives_an_empty_report(tiny_dataset):
    split = split_rows(tiny_dataset.frame, DataConfig(held_out_families=[], devices=["v100-pcie-32gb"]), seed=0)
    result = report(split, tiny_dataset, KnownPredictor())
    assert result.to_dict() == {"summary": {}, "families": [], "in_space": []}
    assert list(accuracy_tables(result, 80)) == []


def test_search_space_without_training_rows_of_the_device_has_no_linear_figure(tiny_dataset, split):
    split.train = split.train[split.train["device"] != "1080ti"]
    result = report(split, tiny_dataset, KnownPredictor())
    assert result.to_dict()["in_space"][0]["mape_operator_counts"] is None


@pytest.mark.parametrize("width", [80, 120])
def test_terminal_tables_fit_the_terminal(tiny_dataset, split, width):
    from rich.console import Console

    console = Console(width=width, record=True, file=open("/dev/null", "w"))
    for table in accuracy_tables(report(split, tiny_dataset, KnownPredictor()), width):
        console.print(table)
    text = console.export_text()
    assert "…" not in text and "20.0" in text and "10.0" in text
    assert ("campaign-1080ti" in text) == (width == 120)


def test_the_card_states_data_figures_and_what_was_held_out(tiny_dataset, split, tmp_path, monkeypatch):
    description = {
        "name": "tiny", "date": "2000-01-01", "training_seconds": 1.0, "versions": {"torch": "2"},
        "config": {"seed": 3, "data": DataConfig(search_space_share=0.5).model_dump(mode="json")},
        "rows": {"train": len(split.train), "by_source": {"campaign": 12}, "by_family": {"resnet": 12}},
        "domain": training_domain(split.train, tiny_dataset.graphs).to_dict(),
    }  # fmt: skip
    (tmp_path / "predictor.json").write_text(json.dumps(description))
    monkeypatch.setattr(card.Predictor, "load", lambda folder: KnownPredictor())
    result = write_card(tmp_path, tiny_dataset, split)
    text = (tmp_path / CARD_FILE).read_text()
    assert "every row of lenet, alexnet, vgg" in text and "50 % of the graphs" in text
    assert "| inference | fp32 | all | all | all | 6 | 10.0 |" in text
    metrics = json.loads((tmp_path / METRICS_FILE).read_text(), parse_constant=pytest.fail)  # NaN is no JSON
    assert metrics["summary"]["inference"]["mape"] == pytest.approx(0.1)
    lines = (tmp_path / PREDICTIONS_FILE).read_text().splitlines()
    assert len(lines) == 1 + len(result.rows) and "predicted_ms" in lines[0]
