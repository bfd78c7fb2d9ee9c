"""gnnperf among the methods."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from gnnperf.errors import DataError
from gnnperf.evaluation.benchmark.ours import Analytic, Gnnperf, GnnperfLayers, HeldOutPredictors
from gnnperf.evaluation.headline import headline
from gnnperf.predictor import DESCRIPTION_FILE, SHIPPED


@pytest.fixture(scope="module")
def predictors():
    return HeldOutPredictors(None, None)


def rows_of(dataset, fold):
    return dataset.frame[dataset.frame["fold"] == fold]


def test_headline_rows_are_predicted_as_by_the_headline_protocol(predictors, end_to_end):
    rows = rows_of(end_to_end, "headline")
    keys = ["source", "citation", "batch", "phase", "model"]
    known = headline(None, "1080ti").rows.set_index(keys)
    known = known.reindex(pd.MultiIndex.from_frame(rows[keys]))
    for method, column in ((Gnnperf(predictors, told_stack=True), "stack_only_ms"), (Analytic(), "analytic_ms")):
        predicted = method.predict("headline", rows, end_to_end.graphs)
        assert predicted == pytest.approx(known[column].to_numpy(), rel=1e-5)


def test_untold_it_predicts_the_same_for_every_stack(predictors, end_to_end):
    rows = rows_of(end_to_end, "headline")
    rows = rows[(rows["model"] == "vgg16") & (rows["batch"] == 8)]
    assert rows["stack"].nunique() > 1
    told = Gnnperf(predictors, told_stack=True).predict("headline", rows, end_to_end.graphs)
    untold = Gnnperf(predictors, told_stack=False).predict("headline", rows, end_to_end.graphs)
    assert np.ptp(untold) < 1e-4 * untold[0] and np.ptp(told) > 1e-3 * told[0]


def test_other_families_come_from_the_rows_that_ship(predictors, end_to_end):
    rows = rows_of(end_to_end, "densenet")
    predicted = Gnnperf(predictors, told_stack=True).predict("densenet", rows, end_to_end.graphs)
    shipped = pd.read_csv(SHIPPED / "families.csv")
    shipped = shipped[(shipped["fold"] == "densenet") & (shipped["precision"] == "fp32")]
    assert np.isfinite(predicted).all() and set(np.round(predicted, 4)) <= set(np.round(shipped["stack_only_ms"], 4))
    with pytest.raises(DataError, match="no network was trained without densenet"):
        Gnnperf(predictors, told_stack=False).predict("densenet", rows, end_to_end.graphs)


def test_layers_by_themselves_take_longer_than_the_network(predictors, end_to_end):
    rows = rows_of(end_to_end, "headline")
    rows = rows[(rows["network"] == "vgg16") & (rows["batch"] == 1)]
    layers = GnnperfLayers(predictors).predict("headline", rows, end_to_end.graphs)
    assert (layers > 1.05 * Gnnperf(predictors, True).predict("headline", rows, end_to_end.graphs)).all()


@pytest.mark.parametrize("fold", ["headline", "resnet"])
def test_a_network_that_saw_the_family_is_refused(fold, tmp_path):
    description = json.loads((SHIPPED / DESCRIPTION_FILE).read_text())
    description["config"]["data"]["held_out_families"] = ["lenet", "vgg"]
    folder = tmp_path / fold
    shutil.copytree(SHIPPED, folder)
    (folder / DESCRIPTION_FILE).write_text(json.dumps(description))
    with pytest.raises(DataError, match="was trained on alexnet"):
        if fold == "headline":
            HeldOutPredictors(folder, None)
        else:
            HeldOutPredictors(None, tmp_path).get(fold)
