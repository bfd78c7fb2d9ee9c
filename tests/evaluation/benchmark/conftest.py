"""What the tests of the benchmark share."""

import pytest

from gnnperf.evaluation.benchmark.truths import truth_rows


@pytest.fixture(scope="session")
def end_to_end():
    """The rows that ship with gnnperf and their graphs."""
    return truth_rows(None)
