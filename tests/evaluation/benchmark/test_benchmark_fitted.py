"""What baselines are fitted on."""

from types import SimpleNamespace

import numpy as np
import pytest

from gnnperf.datasets.splits import HEADLINE_FAMILIES
from gnnperf.errors import DataError
from gnnperf.evaluation.benchmark.fitted import FittedBaseline
from gnnperf.evaluation.benchmark.networks import left_out
from gnnperf.evaluation.benchmark.prediction_cache import PredictionCache
from gnnperf.evaluation.benchmark.run import run_benchmark
from gnnperf.evaluation.benchmark.training_rows import Learns, TrainingRows
from gnnperf.evaluation.benchmark.truths import Truth


class Recorder:
    """A baseline that remembers what it was fitted on, and predicts one ms an image."""

    fits = []

    def fit(self, rows, graphs):
        self.fits.append(rows)
        return self

    def predict(self, graph, device, batch, phase):
        assert graph.batch == batch
        if phase == "training":
            raise DataError("forward passes alone")
        return float(batch)


@pytest.fixture
def method(tiny_dataset):
    Recorder.fits = []

    def make(learns):
        training = TrainingRows(tiny_dataset.frame, tiny_dataset.graphs, learns)
        return FittedBaseline("recorder", "", "", Truth.END_TO_END, Recorder, training)

    return make


@pytest.mark.parametrize("fold", ["headline", "resnet", "densenet"])
def test_no_fit_sees_a_family_of_its_fold_or_of_the_headline(method, end_to_end, fold):
    rows = end_to_end.frame[end_to_end.frame["fold"] == fold]
    method(Learns.NETWORKS).predict(fold, rows, end_to_end.graphs)
    (seen,) = Recorder.fits
    assert len(seen) and not set(seen["family"]) & set(left_out(fold))
    assert not set(seen["family"]) & set(HEADLINE_FAMILIES)
    assert set(seen["kind"]) == {"model"} and set(seen["precision"]) == {"fp32"}


def test_layers_are_fitted_once_for_all_folds_and_networks_for_each(method, end_to_end, tmp_path):
    for learns, fits in ((Learns.LAYERS, 1), (Learns.NETWORKS, 4)):
        Recorder.fits = []
        run_benchmark([method(learns)], end_to_end, PredictionCache(tmp_path))
        assert len(Recorder.fits) == fits  # the tiny dataset has no Inception: two folds see the same networks


def test_where_it_is_not_defined_a_row_has_no_figure(method, end_to_end):
    rows = end_to_end.frame[end_to_end.frame["fold"] == "headline"]
    predicted = method(Learns.NETWORKS).predict("headline", rows, end_to_end.graphs)
    inference = (rows["phase"] == "inference").to_numpy()
    assert (predicted[inference] == rows["batch"][inference]).all() and np.isnan(predicted[~inference]).all()
    with pytest.raises(DataError, match="forward passes alone"):
        method(Learns.NETWORKS).predict("headline", rows[~inference], end_to_end.graphs)


def test_identity_tells_training_rows_apart(method):
    baseline = method(Learns.NETWORKS)
    assert baseline.identity("headline") == method(Learns.NETWORKS).identity("headline")
    assert baseline.identity("headline") != baseline.identity("resnet")
    assert baseline.identity("headline") != method(Learns.LAYERS).identity("headline")


def test_methods_of_layers_get_the_layers_that_were_timed(end_to_end, tiny_dataset):
    asked = []
    spy = SimpleNamespace(predict=lambda graph, *rest: asked.append(graph.num_nodes) or 1.0)
    row = end_to_end.frame.head(1)
    keys = list(end_to_end.graphs)[:2]
    row = row.assign(graph_key=keys[0], layers_key=keys[1])
    for truth in (Truth.END_TO_END, Truth.LAYER_SUM):
        FittedBaseline("spy", "", "", truth, lambda: spy, None).predict("headline", row, end_to_end.graphs)
    assert asked == [end_to_end.graphs[key].num_nodes for key in keys]
