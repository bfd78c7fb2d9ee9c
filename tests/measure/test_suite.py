"""What the experiment on a machine measures: balanced, seeded, small enough."""

from collections import Counter
from itertools import islice

from gnnperf import zoo
from gnnperf.conditions import Phase
from gnnperf.measure.cases import Campaign
from gnnperf.measure.suite import layer_cases, network_cases, suite_networks

CAMPAIGN = Campaign(())


def test_networks_of_every_family_that_are_small_enough():
    names = suite_networks()
    families = Counter(map(zoo.family, names))
    assert len(names) == len(set(names)) >= 300
    assert set(map(zoo.family, zoo.names())) | {"nasbench201", "fbnet", "ofa"} == set(families)
    assert suite_networks() == names != suite_networks(seed=1)


def test_layers_are_half_convolutions_and_every_second_one_trains():
    cases = list(layer_cases(CAMPAIGN, 200))
    kinds = Counter((case.network.name.partition("/")[0], case.phase) for case in cases)
    assert [kinds[kind, Phase.INFERENCE] for kind in ("conv", "dense", "pool")] == [100, 50, 50]
    assert 30 <= kinds["conv", Phase.TRAINING] <= 50 and kinds["pool", Phase.TRAINING] == 25
    assert all(case.of_layers for case in cases)
    for case in cases:
        assert zoo.count(case.network.name).macs * case.batch <= 1e9
    assert cases == list(layer_cases(CAMPAIGN, 200))


def test_asked_about_networks_come_first_then_every_network_once():
    names = [case.network.name for case in islice(network_cases(CAMPAIGN), 40)]
    shown = ["lenet", "alexnet", "vgg16"]
    assert list(dict.fromkeys(names))[:3] == shown and len(set(names)) > 3
    turn = [case for case in network_cases(CAMPAIGN) if case.network.name not in shown][: len(suite_networks())]
    assert len({case.network.name for case in turn}) > len(turn) / 2  # no network twice in a phase
