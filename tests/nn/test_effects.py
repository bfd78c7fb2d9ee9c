"""What effects do, and how far their priors let them go."""

import pytest
import torch

from gnnperf.conditions import Stack
from gnnperf.graph.opgraph import OpClass
from gnnperf.nn.effects import RandomEffects

CAFFE = list(Stack).index(Stack.CAFFE)


@pytest.fixture
def effects() -> RandomEffects:
    return RandomEffects(campaigns=2, own_level=(2,), devices=1)


def values(effects, stack=0, campaign=0, device=0, half=False, teaches=None):
    """Of a graph with a convolution and a normalisation."""
    return effects(
        torch.tensor([stack]),
        torch.tensor([campaign]),
        torch.tensor([device]),
        torch.tensor([half]),
        torch.tensor([int(OpClass.CONV), int(OpClass.BATCH_NORM)]),
        torch.tensor([0, 0]),
        None if teaches is None else torch.tensor([teaches]),
    )


def test_nothing_differs_before_training(effects):
    assert all(part.abs().max() == 0 for part in values(effects, stack=CAFFE, campaign=1, device=1))
    assert effects.penalty() == 0


def test_products_and_other_operators_have_effects_of_their_own(effects):
    with torch.no_grad():
        effects.stack[CAFFE] = torch.tensor([0.0, 0.1, 0.2, 0.0, 0.0, 0.0])
        effects.device[1] = torch.tensor([1.0, 2.0, 3.0, 4.0])
    torch.testing.assert_close(values(effects, stack=CAFFE).device, torch.tensor([0.1, 0.2]))
    torch.testing.assert_close(values(effects, stack=CAFFE, device=1).device, torch.tensor([1.1, 2.2]))
    torch.testing.assert_close(values(effects, device=1, half=True).device, torch.tensor([5.0, 6.0]))
    assert values(effects, device=1).backward == 3 and values(effects, device=1).host == 0
    assert all(part.abs().max() == 0 for part in values(effects, device=0, half=True))


def test_a_campaign_adds_to_its_stack_under_that_stack_alone(effects):
    with torch.no_grad():
        effects.stack[CAFFE, 0] = 1.0
        effects.campaign[1, CAFFE, 0] = 0.5
    assert values(effects, stack=CAFFE).host.item() == 1.0
    assert values(effects, stack=CAFFE, campaign=1).host.item() == 1.5
    assert values(effects, stack=0, campaign=1).host.item() == 0.0
    assert values(effects, stack=CAFFE, campaign=2).host.item() == 1.0


@pytest.mark.parametrize("teaches", [True, False])
def test_rows_that_do_not_teach_a_stack_see_its_effect_but_do_not_move_it(effects, teaches):
    with torch.no_grad():
        effects.stack[CAFFE] = 0.3
        effects.stack_class[CAFFE] = 0.2
    seen = values(effects, stack=CAFFE, campaign=1, teaches=teaches)
    assert seen.host.item() == pytest.approx(0.3) and seen.kernels.tolist() == pytest.approx(
        [0.0, 0.2]
    )  # none of products
    (seen.host.sum() + seen.kernels.sum()).backward()
    assert (effects.stack.grad.abs().sum() > 0) == teaches
    assert (effects.stack_class.grad.abs().sum() > 0) == teaches
    assert effects.campaign.grad.abs().sum() > 0


def test_the_prior_of_classes_lets_one_be_far_off_rather_than_many_a_little(effects):
    with torch.no_grad():
        effects.stack_class[CAFFE, OpClass.BATCH_NORM] = 3.0
    one = effects.penalty().item()
    with torch.no_grad():
        effects.stack_class[CAFFE] = 3.0 / len(OpClass) ** 0.5  # the same sum of squares
    assert one < effects.penalty().item()


def test_campaigns_of_layers_alone_have_levels_of_their_own(effects):
    def penalty(campaign: int, column: int) -> float:
        with torch.no_grad():
            effects.campaign.zero_()
            effects.campaign[campaign, 0, column] = 0.2
        return effects.penalty().item()

    assert penalty(2, 1) < penalty(1, 1) / 10
    assert penalty(2, 0) == penalty(1, 0)
