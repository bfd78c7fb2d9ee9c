"""What a fold's training must not have seen, it has not seen."""

import pandas as pd
import pytest

from gnnperf.datasets.splits import HEADLINE_FAMILIES, SEARCH_SPACES
from gnnperf.errors import DataError
from gnnperf.evaluation.protocols import PROTOCOLS
from gnnperf.evaluation.protocols.families import HEADLINE


@pytest.fixture
def folds(varied_dataset, config):
    return lambda protocol, device="1080ti": {
        fold.name: fold for fold in PROTOCOLS[protocol](varied_dataset.frame, config, device)
    }


def keys(frame: pd.DataFrame) -> set:
    return set(map(tuple, frame.astype(str).to_numpy()))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_protocol_trains_on_a_headline_family_or_on_a_row_that_it_scores(folds, protocol):
    for fold in folds(protocol).values():
        assert not set(fold.train["family"]) & set(HEADLINE_FAMILIES)
        assert set(HEADLINE_FAMILIES) <= set(fold.held_out_families)
        assert not keys(fold.train) & keys(fold.test)
        assert set(fold.test["device"]) == {"1080ti"} and set(fold.test["kind"]) == {"model"}
        assert len(fold.train) and len(fold.test)


def test_a_family_is_left_out_on_every_device_in_every_phase_of_every_stack(folds, varied_dataset, config):
    found = folds("families")
    assert set(found) == {HEADLINE, "resnet", "densenet", "squeezenet", "nasbench201"}
    for name, fold in found.items():
        families = set(HEADLINE_FAMILIES) if name == HEADLINE else {name}
        assert set(fold.test["family"]) == families
        assert not set(fold.train["family"]) & families
        measured = varied_dataset.frame.query("device == '1080ti' and kind == 'model'")
        assert len(fold.test) == measured["family"].isin(families).sum()
        # The rest is all there: other families, on the other device too, and layers.
        others = set(varied_dataset.frame["family"]) - families - set(HEADLINE_FAMILIES)
        assert set(fold.train["family"]) == others and fold.train["device"].nunique() == 2
        assert set(fold.config(config).data.held_out_families) == families | set(HEADLINE_FAMILIES)
        assert fold.config(config).name == f"tiny-{name}"


def test_families_that_the_configuration_holds_out_stay_out(varied_dataset, config):
    data = config.data.model_copy(update={"held_out_families": ("resnet",)})
    for fold in PROTOCOLS["stacks"](varied_dataset.frame, config.model_copy(update={"data": data}), "1080ti"):
        assert not set(fold.train["family"]) & {"resnet", *HEADLINE_FAMILIES}


def test_a_stack_is_left_out_with_its_layers_on_every_device(folds):
    found = folds("stacks")
    assert set(found) == {"pytorch", "mxnet"}
    assert set(found["pytorch"].train["stack"]) == {"mxnet"} and "layer" not in set(found["pytorch"].train["kind"])
    assert set(found["mxnet"].train["stack"]) == {"pytorch"} and "layer" in set(found["mxnet"].train["kind"])
    assert set(found["mxnet"].test["stack"]) == {"mxnet"}


def test_batches_are_left_out_under_every_stack_on_every_device(folds):
    found = folds("batches")
    assert set(found["interpolate"].test["batch"]) == {8}  # mxnet, with batch 1 and 8, has none between
    assert set(found["interpolate"].test["stack"]) == {"pytorch"}
    upper = found["extrapolate"]
    assert set(upper.test.loc[upper.test["stack"] == "pytorch", "batch"]) == {64}
    assert set(upper.test.loc[upper.test["stack"] == "mxnet", "batch"]) == {8}
    models = upper.train[(upper.train["kind"] == "model") & (upper.train["stack"] == "mxnet")]
    assert set(models["batch"]) == {1} and models["device"].nunique() == 2


def test_inside_scores_graphs_of_search_spaces_that_were_not_trained_on(folds):
    fold = folds("inside")["inside"]
    assert set(fold.test["family"]) <= set(SEARCH_SPACES) and fold.in_space
    space = fold.train[fold.train["family"].isin(SEARCH_SPACES)]
    assert len(space) and not set(space["graph_key"]) & set(fold.test["graph_key"])


def test_a_device_without_rows_is_one_clear_error(folds):
    for protocol in PROTOCOLS:
        with pytest.raises(DataError, match="to evaluate on titan-v: import more sources"):
            folds(protocol, "titan-v")
