"""Hand values of weighted quantiles."""

import pytest

from gnnperf.quantile import weighted_quantile


@pytest.mark.parametrize(
    ("level", "value"), [(0.0, 1.0), (0.25, 1.0), (0.26, 2.0), (0.5, 2.0), (0.75, 3.0), (0.76, 4.0), (1.0, 4.0)]
)
def test_equal_weights(level, value):
    assert weighted_quantile([3.0, 1.0, 4.0, 2.0], [1.0, 1.0, 1.0, 1.0], level) == value


def test_weights_count_as_so_many_values():
    assert weighted_quantile([1.0, 2.0], [9.0, 1.0], 0.9) == 1.0
    assert weighted_quantile([1.0, 2.0], [8.9, 1.1], 0.9) == 2.0
    # A family of a hundred rows and one of a single row count the same.
    assert weighted_quantile([1.0] * 100 + [5.0], [0.01] * 100 + [1.0], 0.6) == 5.0
