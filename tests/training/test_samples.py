"""Steps are a function of seed and number, and carry what their rows say."""

import numpy as np
import pytest
import torch

from gnnperf.conditions import Stack
from gnnperf.devices import get_device
from gnnperf.errors import DeviceError
from gnnperf.training.config import BatchMix, Focus
from gnnperf.training.fit import UNLABELLED, unlabelled_graphs
from gnnperf.training.samples import (
    TrainingSteps,
    campaign_name,
    own_level_campaigns,
    row_campaigns,
    row_conditions,
    row_device_slugs,
    row_group,
    row_networks,
)

DEVICES = ("1080ti", "v100-pcie-32gb")
CAMPAIGNS = (
    "campaign-1080ti/1080ti",
    "campaign-1080ti/1080ti/nasbench201",
    "campaign-v100-pcie-32gb/v100-pcie-32gb",
    "campaign-v100-pcie-32gb/v100-pcie-32gb/nasbench201",
)


@pytest.fixture
def steps(tiny_dataset):
    def make(seed=0, focus=Focus(), frame=tiny_dataset.frame, **mix):
        mix = BatchMix(**({"model": 4, "search_space": 3, "layer": 2, "unlabelled": 0} | mix))
        unlabelled = [tiny_dataset.graphs[key] for key in list(tiny_dataset.graphs.keys())[:2]]
        weight = {"model": 1.0, "layer": 0.5}
        return TrainingSteps(frame, tiny_dataset.graphs, CAMPAIGNS, DEVICES, mix, weight, unlabelled, 20, seed, focus)

    return make


def flat(step):
    return [*step.graphs, *step[1:7], torch.tensor(step.seed)]


def test_a_step_depends_on_seed_and_number_alone(steps):
    one, other = steps(), steps()
    other[3]
    for a, b in zip(flat(one[7]), flat(other[7]), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(one[7].latency_ms, one[8].latency_ms)
    assert not torch.equal(one[7].latency_ms, steps(seed=1)[7].latency_ms)


def test_a_step_mixes_kinds_as_configured_and_weighs_them(steps):
    step = steps(unlabelled=2)[0]
    assert len(step.latency_ms) == 4 + 3 + 2 + 2 == len(step.graphs[5])
    assert step.is_model.tolist() == [True] * 4 + [False] * 7
    np.testing.assert_allclose(step.weight, [0.25] * 4 + [0] * 3 + [0.25] * 2 + [0] * 2)
    assert (step.latency_ms[:9] > 0).all() and (step.latency_ms[9:] == 0).all()


def test_latency_graph_device_and_source_of_a_step_belong_together(steps, tiny_dataset):
    frame = tiny_dataset.frame
    for number in range(5):
        step = steps()[number]
        for latency, graph, conditions in zip(step.latency_ms, step.graphs[5], step.conditions, strict=True):
            row = frame[np.isclose(frame["latency_ms"], float(latency), rtol=1e-6)].iloc[0]
            assert row["batch"] == int(graph[2])
            assert CAMPAIGNS[int(conditions[5]) - 1] == campaign_name(row["source"], row["device"], row["family"])
            assert DEVICES[int(conditions[6]) - 1] == row["device"]
            assert int(conditions[0]) == {"inference": 0, "training": 3}[row["phase"]]


def test_a_number_beyond_the_run_is_no_step(steps):
    with pytest.raises(IndexError):
        steps()[20]


def test_rows_are_grouped_by_what_they_are(tiny_dataset):
    groups = dict(zip(tiny_dataset.frame["model"], row_group(tiny_dataset.frame), strict=True))
    assert groups["resnet18"] == "model" and groups["nasbench201/012340"] == "search_space"
    assert groups["dense/c512-f1000"] == "layer"


def test_no_headline_family_is_among_the_unlabelled_graphs():
    from gnnperf import zoo
    from gnnperf.datasets.splits import HEADLINE_FAMILIES

    assert not {zoo.family(name) for name in UNLABELLED} & set(HEADLINE_FAMILIES)


def test_unlabelled_graphs_of_held_out_families_are_left_out():
    assert len(unlabelled_graphs(["densenet", "transformer"])) < len(unlabelled_graphs([])) == len(UNLABELLED)


def test_rows_of_one_network_in_one_kind_of_phase_have_one_number(tiny_dataset):
    frame = tiny_dataset.frame
    numbers, is_model = row_networks(frame), row_group(frame) == "model"
    assert (numbers[~is_model] == 0).all() and (numbers[is_model] > 0).all()
    names = frame["model"].astype(str) + (frame["phase"] == "inference").astype(str)
    pairs = set(zip(names[is_model], numbers[is_model, 0], strict=True))
    assert len(pairs) == names[is_model].nunique() == len({number for _, number in pairs})


def test_campaigns_with_whole_networks_have_no_level_of_their_own(tiny_dataset):
    frame = tiny_dataset.frame
    assert own_level_campaigns(frame[row_group(frame) == "model"]) == ()
    layers = own_level_campaigns(frame[row_group(frame) != "model"])
    assert set(layers) <= set(CAMPAIGNS) and layers


def test_the_devices_in_focus_are_drawn_from_its_start_on(steps):
    focused = steps(focus=Focus(devices=("1080ti",), start=0.5, weight=1e6))
    of = [set(focused[number].conditions[:, 6].tolist()) for number in range(20)]
    assert set.union(*of[:10]) == {1, 2}
    assert set.union(*of[10:]) == {1}


def test_a_focus_prefers_by_its_weight_and_a_device_without_rows_changes_nothing(steps):
    def share(**focus):
        drawn = torch.cat([steps(model=2, search_space=0, layer=0, **focus)[i].conditions[:, 6] for i in range(20)])
        return (drawn == 1).float().mean()

    assert share(focus=Focus(devices=("1080ti",), weight=3)) > share() + 0.1
    for a, b in zip(flat(steps(focus=Focus(devices=("a100",), weight=9))[3]), flat(steps()[3]), strict=True):
        assert torch.equal(a, b)


def test_a_stack_that_only_other_devices_measured_stays_in_focus(steps, tiny_dataset):
    frame = tiny_dataset.frame.copy()
    on_v100 = (frame["device"] == "v100-pcie-32gb") & (frame["phase"] == "training")
    frame["stack"] = np.where(on_v100, "torch7", "pytorch")
    focused = steps(frame=frame, focus=Focus(devices=("1080ti",), weight=1e6), model=12, search_space=0, layer=0)
    drawn = {(int(row[6]), int(row[2])) for number in range(5) for row in focused[number].conditions}
    stack = {str(name): number for number, name in enumerate(Stack)}
    assert drawn == {(1, stack["pytorch"]), (2, stack["torch7"])}


def test_a_focus_takes_any_spelling_of_a_device_and_refuses_what_is_none(steps):
    focused = steps(focus=Focus(devices=("GTX 1080 Ti",), weight=1e6))
    assert set(focused[0].conditions[:, 6].tolist()) == {1}
    with pytest.raises(DeviceError, match="1080tj"):
        steps(focus=Focus(devices=("1080tj",)))


def test_other_devices_settle_on_their_whole_networks_after_all_other_steps(steps, tiny_dataset):
    focus = Focus(devices=("1080ti",), start=0.5, weight=1e6, settle_steps=5)
    settling, plain = (
        steps(focus=focus, unlabelled=2),
        steps(focus=focus.model_copy(update={"settle_steps": 0}), unlabelled=2),
    )
    assert len(settling) == len(plain) + 5 == 25
    for number in (3, 19):
        assert all(torch.equal(a, b) for a, b in zip(flat(settling[number]), flat(plain[number]), strict=True))
    for number in range(20, 25):
        assert settling[number].is_model.all() and set(settling[number].conditions[:, 6].tolist()) == {2}
    with pytest.raises(IndexError):
        settling[25]
    alone = tiny_dataset.frame[tiny_dataset.frame["device"] == "1080ti"]
    assert len(steps(frame=alone, focus=focus)) == len(steps(focus=Focus(settle_steps=5))) == 20


def test_a_search_space_is_a_campaign_of_its_own(tiny_dataset):
    frame = tiny_dataset.frame.iloc[:3].copy()
    frame[["source", "device"]] = ["help", "1080ti"]
    frame["family"] = ["fbnet", "nasbench201", "resnet"]
    assert row_campaigns(frame).tolist() == ["help/1080ti/fbnet", "help/1080ti/nasbench201", "help/1080ti"]
    named = [campaign_name(row.source, row.device, row.family) for row in frame.itertuples()]
    assert row_campaigns(frame).tolist() == named


def test_a_device_of_ones_own_is_known_by_its_slug_and_not_by_its_file(tiny_dataset, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("name: My GPU\nbase: 1080ti\nclock_mhz: 1700\n", encoding="utf-8")
    frame = tiny_dataset.frame.iloc[:2].copy()
    frame["device"] = [str(path), "1080ti"]
    slug = get_device(path).slug
    assert str(tmp_path) not in slug
    assert row_device_slugs(frame).tolist() == [slug, "1080ti"]
    assert row_conditions(frame, tuple(row_campaigns(frame)), (slug, "1080ti"))[:, 5:].tolist() == [[1, 1], [2, 2]]
    assert not any(str(tmp_path) in name for name in row_campaigns(frame))
