"""Metrics against numbers worked out by hand."""

import math

import numpy as np
import pytest

from gnnperf.evaluation.metrics import summarise


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
