"""A configuration is either valid or refused in one line that names the key."""

import pytest

from gnnperf.errors import TrainingError
from gnnperf.resources import resource
from gnnperf.training.config import TrainingConfig

# Eight lines that YAML's merge keys expand to nine to the eighth mappings.
MERGE_BOMB = "a0: &a0 {x: 1}\n" + "".join(f"a{i}: &a{i} {{<<: [{f'*a{i - 1},' * 9}]}}\n" for i in range(1, 9))


@pytest.mark.parametrize("name", ["base", "smoke"])
def test_shipped_configurations_are_valid_and_hold_the_headline_families_out(name):
    config = TrainingConfig.from_yaml(resource(f"configs/{name}.yaml"))
    assert config.name == name
    assert {"lenet", "alexnet", "vgg"} <= set(config.data.held_out_families)


def test_a_written_configuration_reads_back(tmp_path):
    import yaml

    config = TrainingConfig.from_yaml(resource("configs/smoke.yaml"))
    path = tmp_path / "again.yaml"
    path.write_text(yaml.safe_dump(config.model_dump(mode="json")))
    assert TrainingConfig.from_yaml(path) == config


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "the file"),
        ("just words", "the file"),
        ("- a\n- b", "the file"),
        ("seed: 1", "name"),
        ("name: a/b", "name"),
        ("name: ..", "name"),
        ("name: x\nseed: -1", "seed"),
        ("name: x\nseed: 99999999999999999999999", "seed"),
        ("name: x\ndevices: [v100]", "devices"),
        ("name: x\ndata: {held_out_familes: [vgg]}", "data.held_out_familes"),
        ("name: x\ndata: {held_out_families: vgg}", "data.held_out_families"),
        ("name: x\nnetwork: {width: wide}", "network.width"),
        ("name: x\nnetwork: {readout: mean}", "network.readout"),
        ("name: x\noptimisation: {steps: 0}", "optimisation.steps"),
        ("name: x\noptimisation: {steps: 1.0e+400}", "optimisation.steps"),
        ("name: x\noptimisation: {steps: 99999999999999999999999}", "optimisation.steps"),
        ("name: x\noptimisation: {learning_rate: .nan}", "optimisation.learning_rate"),
        ("name: x\noptimisation: {learning_rate: .inf}", "optimisation.learning_rate"),
        ("name: x\noptimisation: {loss_weight: {model: -1}}", "optimisation.loss_weight"),
        ("name: x\noptimisation: {loss_weight: {modell: 1}}", "optimisation.loss_weight"),
        ("name: x\nseed: " + "9" * 5000, "valid YAML"),
        ("name: !!python/object/apply:os.system [true]", "valid YAML"),
        ("name: [unclosed", "valid YAML"),
        ("[" * 3000, "valid YAML"),
        ("a: &a [1,1]\nb: &b [*a,*a]\nname: [*b,*b]", "anchors"),
        (MERGE_BOMB, "anchors"),
        ("name: x\n#" + "x" * 70_000, "larger than 64 KiB"),
    ],
)  # fmt: skip
def test_invalid_configurations_are_refused_in_one_line(tmp_path, text, named):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(TrainingError) as error:
        TrainingConfig.from_yaml(path)
    assert named in str(error.value) and str(path) in str(error.value)
    assert "\n" not in str(error.value) and len(str(error.value)) < 600


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_bytes(b"\xff")])
def test_unreadable_files_are_refused_by_name(tmp_path, make):
    path = tmp_path / "config.yaml"
    make(path)
    with pytest.raises(TrainingError, match=str(path)):
        TrainingConfig.from_yaml(path)


def test_settling_is_left_out_where_it_would_change_nothing():
    focus = {"devices": ["GTX 1080 Ti"], "settle_steps": 7}
    optimisation = TrainingConfig.model_validate(
        {"name": "x", "optimisation": {"steps": 5, "focus": focus}}
    ).optimisation
    assert optimisation.total_steps == 12
    assert optimisation.scoring_only("1080ti").total_steps == 5
    assert optimisation.scoring_only("2080ti") == optimisation
