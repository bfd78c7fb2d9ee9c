import shutil

import pytest

from gnnperf.predictor import SHIPPED
from gnnperf.tuning import comparison
from gnnperf.tuning.comparison import METHODS, compare_with_resperfnet


@pytest.fixture
def trained(monkeypatch):
    """The shipped predictor stands in for what would be trained; what was asked for is kept."""
    asked = []

    def fit(config, dataset, folder, callbacks):
        asked.append(config)
        shutil.copytree(SHIPPED, folder)

    monkeypatch.setattr(comparison, "fit", fit)
    monkeypatch.setattr(comparison, "write_card", lambda *_: None)
    return asked


def test_the_winner_is_trained_and_scored_beside_what_needs_no_data(tiny_dataset, config, tmp_path, trained):
    result = compare_with_resperfnet(config, tiny_dataset, tmp_path, None)
    assert trained == [config]
    assert [method.name for method in result.methods] == ["gnnperf", "refined-roofline"]
    assert len(result.rows) > 80 and result.rows["gnnperf"].notna().all()
    assert any("resperfnet" in note and "--data" in note for note in result.notes)
    text = (tmp_path / "benchmark.md").read_text()
    assert "gnnperf" in text and "refined-roofline" in text
    assert (tmp_path / "benchmark.png").read_bytes().startswith(b"\x89PNG")


def test_every_method_of_the_comparison_is_one_of_the_benchmark():
    from gnnperf.baselines import BASELINES

    assert set(METHODS) <= {"gnnperf", *BASELINES} and any("resperfnet" in name for name in METHODS)
