"""Metrics against numbers worked out by hand."""

import math

import numpy as np
import pandas as pd
import pytest

from gnnperf.evaluation.metrics import bootstrap_mape, summarise, summarise_rows


def test_metrics_of_four_rows():
    metrics = summarise(np.array([1.1, 1.6, 4.0, 8.0]), np.array([1.0, 2.0, 4.0, 16.0]))  # +10 %, -20 %, 0, -50 %
    assert metrics.rows == 4
    assert metrics.mape == pytest.approx((0.1 + 0.2 + 0 + 0.5) / 4)
    assert metrics.median_ape == pytest.approx(0.15)
    assert metrics.worst_ape == pytest.approx(0.5)
    assert metrics.within_20 == pytest.approx(0.75)
    assert metrics.bias == pytest.approx((1.1 * 0.8 * 1.0 * 0.5) ** (1 / 4) - 1)
    assert metrics.kendall_tau == pytest.approx(1.0)


def test_rank_correlation_counts_swapped_pairs():
    assert summarise([1.0, 2.0, 4.0, 3.0], [1.0, 2.0, 3.0, 4.0]).kendall_tau == pytest.approx((5 - 1) / 6)


def test_twice_too_long_and_half_too_long_have_no_bias():
    assert summarise([2.0, 0.5], [1.0, 1.0]).bias == pytest.approx(0.0)


def test_what_is_not_defined_is_nan_here_and_none_in_json():
    empty, single = summarise([], []), summarise([2.0], [1.0])
    assert empty.rows == 0 and math.isnan(empty.mape) and empty.to_dict()["mape"] is None
    assert math.isnan(single.kendall_tau) and single.to_dict()["kendall_tau"] is None
    assert single.to_dict()["mape"] == 1.0


def table(**columns) -> pd.DataFrame:
    """Rows of one family, network and set of conditions, but for what is given."""
    count = len(columns["latency_ms"])
    names = ("family", "model", "source", "device", "stack", "phase", "precision", "window")
    constant = {name: ["x"] * count for name in names} | {"batch": [1] * count}
    return pd.DataFrame(constant | {"low_ms": np.nan, "high_ms": np.nan} | columns)


def test_each_family_counts_once_in_the_mean_of_families():
    rows = table(family=["a", "a", "a", "b"], latency_ms=[1.0] * 4, stack_only_ms=[1.1, 1.1, 1.1, 1.5])
    metrics = summarise_rows(rows)
    assert metrics.mape == pytest.approx(0.2)
    assert metrics.mape_families == pytest.approx((0.1 + 0.5) / 2)


def test_interval_coverage_and_width_by_hand():
    rows = table(
        latency_ms=[1.0, 2.0, 3.0, 9.0], stack_only_ms=[1.0, 2.0, 2.0, 9.0],
        low_ms=[0.9, 1.0, 1.5, np.nan], high_ms=[1.1, 4.0, 2.5, np.nan],
    )  # fmt: skip
    metrics = summarise_rows(rows)
    assert metrics.coverage == pytest.approx(2 / 3)  # the third is above its interval, the fourth has none
    assert metrics.width == pytest.approx((0.2 + 1.5 + 0.5) / 3)
    assert summarise_rows(rows.assign(predicted_ms=1.0), "predicted_ms").to_dict()["coverage"] is None


def test_ranks_are_compared_under_equal_conditions():
    rows = table(
        batch=[1, 1, 1, 8, 8, 8, 9, 9],
        latency_ms=[1.0, 2.0, 3.0, 10.0, 20.0, 30.0, 7.0, 8.0],
        stack_only_ms=[1.0, 2.0, 3.0, 30.0, 20.0, 10.0, 8.0, 7.0],
    )
    metrics = summarise_rows(rows)
    assert metrics.kendall_tau_within == pytest.approx((1 - 1) / 2)  # two rows rank nothing
    assert metrics.kendall_tau == pytest.approx((28 - 2 * (3 + 1)) / 28)


def test_rows_without_a_figure_are_left_out():
    rows = table(latency_ms=[1.0, 1.0], stack_only_ms=[1.1, 1.1], linear_ms=[np.nan, 1.3])
    assert summarise_rows(rows, "linear_ms").rows == 1
    assert summarise_rows(rows, "linear_ms").mape == pytest.approx(0.3)
    assert summarise_rows(rows.iloc[:1], "linear_ms").to_dict()["mape"] is None


def test_bootstrap_draws_whole_networks_within_their_family():
    # Family a: two networks, off by 10 % (three rows) and 50 % (one row). Family b: one network, off by 20 %.
    rows = table(
        family=["a"] * 4 + ["b"] * 2, model=["p", "p", "p", "q", "r", "r"],
        latency_ms=[1.0] * 6, stack_only_ms=[1.1, 1.1, 1.1, 1.5, 1.2, 1.2],
    )  # fmt: skip
    low, high = bootstrap_mape(rows, seed=3)
    # Of the draws p and p, p and q, q and q in a quarter, a half and a quarter, the ends are the pure ones.
    assert low == pytest.approx((6 * 0.1 + 2 * 0.2) / 8)
    assert high == pytest.approx((2 * 0.5 + 2 * 0.2) / 4)
    assert bootstrap_mape(rows.sample(frac=1, random_state=1), seed=3) == pytest.approx((low, high))


def test_bootstrap_is_decided_by_its_seed():
    random = np.random.default_rng(0)
    rows = table(
        model=[f"net{i}" for i in range(40)], latency_ms=np.ones(40), stack_only_ms=np.exp(random.normal(0, 0.3, 40))
    )
    first, metrics = bootstrap_mape(rows, seed=1), summarise_rows(rows, seed=1)
    assert first == bootstrap_mape(rows, seed=1) == (metrics.ci_low, metrics.ci_high)
    assert first != bootstrap_mape(rows, seed=2)
    assert first[0] < metrics.mape < first[1]
    ape = np.abs(rows["stack_only_ms"] - 1)
    assert (first[1] - first[0]) / 2 == pytest.approx(1.96 * ape.std() / np.sqrt(40), rel=0.15)  # the normal interval


def test_one_network_a_family_has_no_interval():
    assert summarise_rows(table(latency_ms=[1.0, 1.0], stack_only_ms=[1.1, 1.3])).to_dict()["ci_low"] is None
