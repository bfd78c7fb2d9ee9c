"""A device that is left out is left out whole: rows, layers, boards of the same chip, and what is known of it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.schema import concatenate
from gnnperf.datasets.splits import HEADLINE_FAMILIES
from gnnperf.devices import get_device
from gnnperf.errors import DataError
from gnnperf.evaluation.evaluation import Evaluation
from gnnperf.evaluation.protocols.devices import device_folds
from gnnperf.evaluation.protocols.folds import Fold
from gnnperf.training.config import Focus
from gnnperf.training.samples import campaign_name, row_campaigns

PASCAL = {"1080ti", "titan-xp"}
VOLTA = {"v100-pcie", "v100-pcie-32gb"}


@pytest.fixture(scope="module")
def dataset(tiny_dataset) -> Dataset:
    """Rows of two Pascal GPUs, the later 1.25 times as fast, and of one V100 on two boards."""
    frame = tiny_dataset.frame
    frames = [frame]
    for device, base, factor in (("titan-xp", "1080ti", 0.8), ("v100-pcie", "v100-pcie-32gb", 1.0)):
        rows = frame[frame["device"] == base]
        frames.append(rows.assign(device=device, latency_ms=rows["latency_ms"] * factor))
    return Dataset(None, concatenate(frames), tiny_dataset.graphs)


@pytest.fixture
def folds(dataset, config):
    return {fold.name: fold for fold in device_folds(dataset.frame, config)}


def test_kin_stay_in_one_fold_and_go_in_the_other(folds):
    assert set(folds) == {*PASCAL, "generation-pascal", "generation-volta"}  # two boards of one chip are no kin
    assert set(folds["1080ti"].train["device"]) == {"titan-xp"} | VOLTA
    assert set(folds["1080ti"].test["device"]) == {"1080ti"}
    assert set(folds["generation-pascal"].train["device"]) == VOLTA
    assert set(folds["generation-pascal"].test["device"]) == PASCAL
    assert set(folds["generation-volta"].train["device"]) == PASCAL
    assert set(folds["generation-volta"].test["device"]) == VOLTA


def test_nothing_of_the_device_is_trained_on(folds):
    for fold in folds.values():
        tested = set(fold.test["device"].astype(str))
        assert "layer" in set(fold.train["kind"]) and set(fold.test["kind"]) == {"model"}
        assert not tested & set(fold.train["device"].astype(str))
        known = set(row_campaigns(fold.train))
        assert not known & {campaign_name(row.source, row.device, row.family) for row in fold.test.itertuples()}
        assert not set(fold.train["family"]) & set(HEADLINE_FAMILIES)
        assert not set(fold.test["family"]) & set(HEADLINE_FAMILIES)


def test_no_device_is_in_focus(folds, config):
    focus = Focus(devices=("1080ti",), start=0.5, weight=1000)
    focused = config.model_copy(update={"optimisation": config.optimisation.model_copy(update={"focus": focus})})
    assert all(fold.config(focused).optimisation.focus == Focus() for fold in folds.values())
    assert Fold("other", (), folds["1080ti"].train, folds["1080ti"].test).config(focused).optimisation.focus == focus


def test_boards_of_one_chip_are_one_fold(dataset, config):
    rows = dataset.frame[dataset.frame["device"] == "v100-pcie"].assign(device="titan-v")
    frame = concatenate([dataset.frame, rows])
    folds = {fold.name: fold for fold in device_folds(frame, config, "v100-pcie-32gb", "v100-pcie", "1080ti")}
    assert set(folds) == {"1080ti", "v100-pcie", "generation-pascal", "generation-volta"}
    assert set(folds["v100-pcie"].test["device"]) == VOLTA
    assert set(folds["v100-pcie"].train["device"]) == {"titan-v"} | PASCAL
    assert set(folds["generation-pascal"].test["device"]) == {"1080ti"}
    assert set(folds["generation-pascal"].train["device"]) == {"titan-v"} | VOLTA
    alone = {fold.name: fold for fold in device_folds(frame, config, "v100-pcie-32gb")}
    assert set(alone["v100-pcie-32gb"].test["device"]) == {"v100-pcie-32gb"}
    assert not set(alone["v100-pcie-32gb"].train["device"]) & VOLTA


def test_devices_without_rows_are_one_clear_error(dataset, config):
    with pytest.raises(DataError, match="no networks to evaluate on a100-sxm-40gb: import more sources"):
        device_folds(dataset.frame, config, "a100-sxm-40gb")


def test_scaling_takes_the_same_network_from_the_nearest_device(dataset, folds):
    from gnnperf.evaluation.device_scaling import with_scaling
    from gnnperf.evaluation.references import roofline_latencies

    fold = folds["1080ti"]
    rows = with_scaling(fold.test.reset_index(drop=True), [fold], dataset)
    on_kin = fold.test.assign(device="titan-xp")
    ratio = roofline_latencies(fold.test, dataset) / roofline_latencies(on_kin, dataset)
    np.testing.assert_allclose(rows["scaled_ms"], 0.8 * fold.test["latency_ms"] * ratio)
    assert (ratio > 1.05).all()  # the GTX 1080 Ti is the slower one
    assert np.isfinite(rows["carried_ms"]).all()


def test_what_no_other_device_ran_has_nothing_to_be_scaled_from(dataset, folds, config):
    from gnnperf.evaluation.device_scaling import with_scaling

    frame = dataset.frame
    alone = (frame["model"] == "resnet18") & ~frame["device"].isin(["1080ti"])
    fold = next(iter(device_folds(frame[~alone], config, "1080ti")))
    rows = with_scaling(fold.test.reset_index(drop=True), [fold], dataset)
    assert rows.loc[rows["model"] == "resnet18", "scaled_ms"].isna().all()
    assert rows.loc[rows["model"] != "resnet18", "scaled_ms"].notna().all()


def test_a_fitted_roofline_is_carried_to_a_device_whose_times_follow_it(dataset, folds):
    """Times that are the roofline's, half of it reached, on every device: fitted on one, they are right on another."""
    from gnnperf.evaluation.device_scaling import with_scaling
    from gnnperf.evaluation.references import roofline_latencies

    fold = folds["generation-pascal"]
    train, test = (rows[(rows["phase"] == "inference") & (rows["kind"] == "model")] for rows in (fold.train, fold.test))
    train, test = (rows.assign(latency_ms=2 * roofline_latencies(rows, dataset)) for rows in (train, test))
    made = replace(fold, train=train, test=test)
    rows = with_scaling(made.test.reset_index(drop=True), [made], dataset)
    np.testing.assert_allclose(rows["carried_ms"], rows["latency_ms"], rtol=1e-3)


def test_report_tells_devices_and_what_was_left_out_apart(folds):
    rows = pd.concat(
        [
            fold.test[["model", "family", "source", "device", "stack", "precision", "phase", "window", "batch",
                       "latency_ms"]].assign(fold=name)
            for name, fold in folds.items()
        ],
        ignore_index=True,
    )  # fmt: skip
    rows = rows.astype({name: str for name in rows.columns if rows[name].dtype == "category"})
    error = rows["fold"].str.startswith("generation").map({True: 1.5, False: 1.1})
    for column in (
        "predicted_ms",
        "analytic_ms",
        "linear_ms",
        "operator_counts_ms",
        "adapted_ms",
        "repeated_ms",
        "roofline_ms",
        "low_ms",
        "high_ms",
    ):
        rows[column] = np.nan
    rows["stack_only_ms"] = rows["latency_ms"] * error
    rows["scaled_ms"], rows["carried_ms"] = rows["latency_ms"] * 1.2, rows["latency_ms"] * 1.3
    found = Evaluation("devices", "all devices", "tiny", 0, rows).to_dict()
    by_group = found["by_group"]
    assert by_group["kin trained on"]["mape"] == pytest.approx(0.1)
    assert by_group["generation left out"]["mape"] == pytest.approx(0.5)
    assert by_group["search spaces, kin trained on"]["mape_scaled"] == pytest.approx(0.2)
    devices = {(record["fold"], record["device"]) for record in found["by_device"]}
    assert ("generation-pascal", "1080ti") in devices and ("1080ti", "1080ti") in devices
    assert all(record["mape_carried"] == pytest.approx(0.3) for record in found["by_device"])
    assert all(get_device(device).slug == device for _, device in devices)
