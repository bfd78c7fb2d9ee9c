"""Oracles of stacks on latencies whose network and setting parts are known."""

import numpy as np
import pytest

from gnnperf.datasets.schema import concatenate, measurements
from gnnperf.evaluation.stack_spread import (
    network_name,
    oracle_latencies,
    setting_differences,
    spread_rows,
    summarise_oracles,
)

NETWORKS = {"resnet50": 10.0, "resnet101": 20.0, "inception_v3": 14.0, "vgg16": 30.0, "vgg19": 36.0}
STACKS = {"pytorch": 1.0, "caffe": 1.5, "mxnet": 0.8}


def frame(surcharge=lambda model, stack, batch: 1.0, devices=("1080ti",), batches=(1, 8)):
    rows = [
        measurements(
            source="made", model=[model], device=device, stack=stack, batch=batch, citation=f"{model}-{stack}-{batch}",
            latency_ms=ms * batch * factor * surcharge(model, stack, batch),
        )
        for device in devices
        for model, ms in NETWORKS.items()
        for stack, factor in STACKS.items()
        for batch in batches
    ]  # fmt: skip
    return concatenate(rows)


def test_readings_of_an_architecture_share_a_name():
    names = ("caffe_alexnet@224", "alexnet@227", "mxnet_alexnet", "tf_alexnet", "alexnet")
    assert {network_name(name) for name in names} == {"alexnet"}
    assert network_name("preact_resnet50") == network_name("caffe_resnet50") == "resnet50"
    assert network_name("resnet101") != network_name("resnet50")


def test_rows_without_a_second_setting_are_left_out():
    rows = frame()
    alone = measurements(source="made", model=["resnet18"], device="1080ti", stack="pytorch", batch=1, citation="alone",
                         latency_ms=3.0)  # fmt: skip
    spread = spread_rows(concatenate([rows, alone]))
    assert len(spread) == len(rows) and "resnet18" not in set(spread["network"])


def test_the_same_setting_measured_twice_is_one_row():
    rows = frame(batches=(1,))
    again = rows[rows["model"] == "vgg16"].assign(latency_ms=lambda part: 4 * part["latency_ms"])
    spread = spread_rows(concatenate([rows, again]))
    vgg = spread[(spread["network"] == "vgg16") & (spread["stack"] == "pytorch")]
    assert vgg["latency_ms"].tolist() == pytest.approx([60.0])


def test_differences_of_settings_are_found_with_gaps():
    spread = spread_rows(frame())
    spread = spread[~((spread["network"] == "resnet50") & (spread["stack"] == "caffe"))]
    found = setting_differences(spread)
    for stack, factor in STACKS.items():
        difference = found[f"{stack}/device"] - found["pytorch/device"]
        assert difference == pytest.approx(np.log(factor)), stack


def test_every_oracle_is_exact_where_stacks_treat_all_alike():
    scored = oracle_latencies(spread_rows(frame(devices=("1080ti", "1080"))), "1080ti")
    assert set(scored["device"]) == {"1080ti"}
    (record,) = summarise_oracles(scored)
    for oracle in ("own_device", "all_devices", "by_batch"):
        assert record[oracle] == pytest.approx(0) and record[f"rows_{oracle}"] == record["rows"] == 30
    assert record["own_family"] == pytest.approx(0)
    assert record["rows_own_family"] == 24  # Inception has one network
    assert record["no_difference"] > 0.2


def test_a_family_that_a_stack_treats_otherwise_is_what_only_its_own_networks_tell():
    spread = spread_rows(frame(lambda model, stack, batch: 2.0 if (model[:3], stack) == ("vgg", "caffe") else 1.0))
    by_family = {
        record["family"]: record for record in summarise_oracles(oracle_latencies(spread, "1080ti"), ["family"])
    }
    assert by_family["vgg"]["own_device"] > 0.3 and by_family["vgg"]["own_family"] == pytest.approx(0)
    # Headline families teach the others nothing, wrong or right.
    assert by_family["resnet"]["own_device"] == pytest.approx(0)


def test_only_the_oracle_of_batches_knows_that_a_stack_is_slow_at_one():
    spread = spread_rows(frame(lambda model, stack, batch: 2.0 if (stack, batch) == ("mxnet", 1) else 1.0))
    (record,) = summarise_oracles(oracle_latencies(spread, "1080ti"))
    assert record["by_batch"] == pytest.approx(0) and record["own_device"] > 0.1


def test_a_setting_that_no_other_family_has_is_not_known():
    rows = frame()
    rows = rows[~((rows["stack"] == "mxnet") & (rows["family"] != "vgg"))]
    scored = oracle_latencies(spread_rows(rows), "1080ti")
    mxnet = scored[scored["stack"] == "mxnet"]
    assert mxnet["own_device"].isna().all() and mxnet["own_family"].notna().all()
    assert scored.loc[scored["stack"] == "caffe", "own_device"].notna().all()


def test_a_device_without_rows_has_none():
    assert oracle_latencies(spread_rows(frame()), "v100-pcie").empty
