"""All baselines by name."""

import subprocess
import sys

import pytest

from gnnperf.baselines import BASELINES
from gnnperf.baselines.baseline import Baseline


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_has_the_interface_and_says_what_it_is(name):
    baseline = BASELINES[name]()
    assert isinstance(baseline, Baseline)
    assert baseline.name == name
    assert type(baseline).__doc__.count("Ours to choose:") == 1
    assert baseline is not BASELINES[name]()


def test_the_registry_and_what_needs_no_network_start_without_torch():
    code = (
        "import sys, gnnperf.baselines as b; "
        "[b.BASELINES[n]() for n in ('roofline', 'refined-roofline', 'linear', 'nearest-neighbour', 'operator-lookup',"
        " 'layer-lookup')]; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
