import optuna
import pytest
import yaml
from optuna.distributions import CategoricalDistribution

from gnnperf.resources import resource
from gnnperf.training.config import TrainingConfig
from gnnperf.tuning.space import SPACE, outside, suggest, values_of, with_values


def ends(where) -> list:
    return list(where.choices) if isinstance(where, CategoricalDistribution) else [where.low, where.high]


@pytest.mark.parametrize("name", SPACE)
def test_every_end_of_the_space_makes_a_valid_configuration_that_differs_there_alone(config, name):
    for value in ends(SPACE[name]):
        changed = values_of(with_values(config, {name: value}))
        assert changed.pop(name) == value
        assert changed.items() <= values_of(config).items()


def test_a_drawn_configuration_survives_yaml(config):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0))
    drawn = suggest(study.ask(), config)
    again = TrainingConfig.model_validate(yaml.safe_load(yaml.safe_dump(drawn.model_dump(mode="json"))))
    assert again == drawn != config
    assert drawn.data == config.data and drawn.optimisation.steps == config.optimisation.steps


def test_real_numbers_are_short(config):
    assert with_values(config, {"network.dropout": 0.123456}).network.dropout == 0.123


@pytest.mark.parametrize("file", ["base", "smoke"])
def test_what_ships_can_be_trial_0(file):
    assert outside(TrainingConfig.from_yaml(resource(f"configs/{file}.yaml"))) == {}


def test_values_that_the_search_cannot_draw_are_named(config):
    strange = with_values(config, {"network.width": 200, "optimisation.batch.model": 9, "network.dropout": 0.5})
    assert outside(strange) == {"network.width": 200, "network.dropout": 0.5, "optimisation.batch.model": 9}
    unnamed = config.optimisation.model_copy(update={"loss_weight": {"model": 1.0}})
    missing = outside(config.model_copy(update={"optimisation": unnamed}))
    assert missing == {"optimisation.loss_weight.search_space": None, "optimisation.loss_weight.layer": None}
