import pytest

from gnnperf.datasets.splits import HEADLINE_FAMILIES, SEARCH_SPACES
from gnnperf.errors import DataError
from gnnperf.tuning.folds import narrowed, validation_folds


def test_headline_families_and_search_spaces_are_never_scored_and_the_fold_s_family_never_trained_on(
    tiny_dataset, config, small_folds
):
    folds = validation_folds(tiny_dataset.frame, config, "1080ti")
    assert [fold.name for fold in folds] == ["densenet", "resnet", "squeezenet"]
    for fold in folds:
        assert set(fold.test["family"]) == {fold.name} and set(fold.test["device"]) == {"1080ti"}
        trained = set(fold.train["family"])
        assert not trained & {*HEADLINE_FAMILIES, fold.name}
        assert {"resnet", "densenet", "squeezenet"} - {fold.name} <= trained
        assert set(HEADLINE_FAMILIES) <= set(fold.held_out_families)
        assert not set(fold.test["family"]) & set(SEARCH_SPACES)


def test_families_of_few_rows_share_a_fold(tiny_dataset, config):
    (fold,) = validation_folds(tiny_dataset.frame, config, "1080ti")
    assert fold.name == "densenet+resnet+squeezenet"
    assert set(fold.test["family"]) == {"densenet", "resnet", "squeezenet"}
    assert not set(fold.train["family"]) & set(fold.test["family"])


def test_the_family_with_most_rows_comes_first(tiny_dataset, config, small_folds):
    frame = tiny_dataset.frame
    fewer = frame[(frame["family"] != "densenet") | (frame["batch"] == 1) | (frame["device"] != "1080ti")]
    names = [fold.name for fold in validation_folds(fewer, config, "1080ti")]
    assert names == ["resnet", "squeezenet", "densenet"]


def test_what_the_configuration_holds_out_is_not_scored_either(tiny_dataset, config, small_folds):
    data = config.data.model_copy(update={"held_out_families": ("resnet",)})
    folds = validation_folds(tiny_dataset.frame, config.model_copy(update={"data": data}), "1080ti")
    assert [fold.name for fold in folds] == ["densenet", "squeezenet"]
    assert all("resnet" not in set(fold.train["family"]) for fold in folds)


def test_only_fp32_inference_and_training_steps_are_scored(tiny_dataset, config):
    frame = tiny_dataset.frame.astype({"precision": str, "phase": str})
    frame.loc[frame["model"] == "resnet18", "precision"] = "fp16"
    frame.loc[frame["model"] == "densenet121", "phase"] = "forward"
    (fold,) = validation_folds(frame, config, "1080ti")
    assert set(fold.test["model"]) == {"squeezenet1_1"}


def test_a_device_without_other_families_is_refused(tiny_dataset, config):
    with pytest.raises(DataError, match="nothing to tune by: 2080ti has no FP32 row of a family outside alexnet"):
        validation_folds(tiny_dataset.frame, config, "2080ti")


def test_trials_train_on_fp32_rows_of_sources_that_measured_the_device(tiny_dataset, config):
    data = config.data.model_copy(update={"precisions": ("fp32", "fp16")})
    mixed = config.model_copy(update={"data": data})
    found = narrowed(mixed, tiny_dataset.frame, "1080ti").data
    assert found.sources == ("campaign-1080ti",) and found.precisions == ("fp32",)
    other = mixed.model_copy(update={"data": data.model_copy(update={"sources": ("campaign-1080ti", "else")})})
    assert narrowed(other, tiny_dataset.frame, "1080ti").data.sources == ("campaign-1080ti",)
