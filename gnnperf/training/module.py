"""The Lightning module: one optimisation step of the latency network."""

from __future__ import annotations

import math

import lightning
import torch
from torch import Tensor, nn

from gnnperf.errors import TrainingError
from gnnperf.nn.alignment import central_moment_discrepancy
from gnnperf.nn.effects import SETTLING_EFFECTS
from gnnperf.nn.losses import LOSSES
from gnnperf.nn.network import LatencyNetwork
from gnnperf.training.config import OptimisationConfig
from gnnperf.training.samples import Step, campaign_device

_LARGEST_GRADIENT = 1.0


class LatencyModule(lightning.LightningModule):
    """Fits a :class:`LatencyNetwork` on mixed steps of whole models, search spaces, layers and unlabelled graphs.

    Rows of one network err together, so in training each network has a random effect of its own, and another under
    each stack. They take what the latency network cannot explain, which would else move what all networks share; a
    hundred rows of two networks then count as two networks. Predictions know none of them.

    Args:
        network: what is fitted.
        config: how.
        networks: how many networks the rows have, and how many pairs of network and stack.
    """

    def __init__(self, network: LatencyNetwork, config: OptimisationConfig, networks: tuple[int, int]) -> None:
        super().__init__()
        self.network = network
        self.config = config
        # Row 0 belongs to rows of no network in particular.
        self.network_effect = nn.ParameterList(torch.zeros(count + 1) for count in networks)
        focus, known = config.focus.slugs, network.config
        devices = [False, *(slug not in focus for slug in known.devices)]
        campaigns = [
            False,
            *(campaign_device(name) not in focus and name not in known.own_level_campaigns for name in known.campaigns),
        ]
        self.register_buffer("_settling_devices", torch.tensor(devices)[:, None], persistent=False)
        self.register_buffer("_settling_campaigns", torch.tensor(campaigns)[:, None, None], persistent=False)

    def training_step(self, step: Step, _: int) -> Tensor:  # noqa: D102
        config = self.config
        # Effects of campaigns and context corrections are switched off at random, so that what remains predicts alone.
        # Seeded by the step itself, dropout too: a resumed run draws what an uninterrupted one would have drawn.
        torch.manual_seed(step.seed)
        num_graphs = step.latency_ms.shape[0]
        context_on = (torch.rand(num_graphs) >= config.context_dropout).float()
        campaign_on = (torch.rand(num_graphs) >= config.campaign_dropout) | ~step.is_model
        device_on = torch.rand(num_graphs) >= config.device_dropout
        conditions = step.conditions.clone()
        conditions[:, 5] *= campaign_on & device_on  # a campaign on an unknown device is unknown too
        conditions[:, 6] *= device_on
        predicted = self.network(*step.graphs, step.device, conditions, context_on, step.is_model)
        labelled = step.weight > 0
        deviation = sum(effect[number] for effect, number in zip(self.network_effect, step.network.T, strict=True))
        explained_ms = predicted.latency_ms * torch.exp(deviation * step.is_model)
        loss = LOSSES[config.loss](
            explained_ms[labelled], step.latency_ms[labelled], step.weight[labelled], config.beta
        )
        on_unlabelled = (~labelled)[step.graphs[4]].float()[:, None] * 4 + 1
        correction = (
            (predicted.local.square() * on_unlabelled).mean()
            + (predicted.context.square() * on_unlabelled).mean()
            + (predicted.launch.square() * on_unlabelled[:, 0]).mean()
        )
        total = (
            loss
            + config.correction_weight * correction
            + config.physics_weight * self.network.physics_penalty()
            + config.effect_weight * (self.network.effects.penalty() + self._network_penalty())
        )
        if config.alignment_weight:
            total = total + config.alignment_weight * _alignment(predicted.state, step)
        with torch.no_grad():
            error = (predicted.latency_ms / step.latency_ms.clamp_min(1e-9) - 1).abs()[labelled & step.is_model]
            self.log("loss", loss, prog_bar=True)
            self.log("mape", error.mean() * 100, prog_bar=True)
        return total

    def _network_penalty(self) -> Tensor:
        """Negative log prior of what single networks deviate by."""
        return sum((effect / self.config.network_deviation).square().sum() for effect in self.network_effect)

    def on_train_batch_start(self, *_: object) -> None:
        """From the first settling step on, nothing learns but effects of devices and campaigns."""
        if self.global_step < self.config.steps:
            return
        effects = self.network.effects
        self.requires_grad_(False)
        for table in (effects.device, effects.campaign):
            table.requires_grad_(True)
            if self.global_step == self.config.steps:  # what rows of the devices in focus were about to do stays undone
                self.optimizers().state.pop(table, None)

    def configure_gradient_clipping(self, *_: object, **__: object) -> None:
        """Bound the norm of all gradients together.

        Raises:
            TrainingError: the norm is not finite, so the step would ruin every weight.
        """
        effects = self.network.effects
        if self.global_step >= self.config.steps:
            effects.device.grad.mul_(self._settling_devices)
            effects.campaign.grad.mul_(self._settling_campaigns)
        else:
            effects.device.grad[:, SETTLING_EFFECTS] = 0
        norm = torch.nn.utils.clip_grad_norm_(self.parameters(), _LARGEST_GRADIENT)
        if not torch.isfinite(norm):
            raise TrainingError(
                f"the loss or its gradient is no longer finite at step {self.global_step}: lower the learning rates"
            )

    def configure_optimizers(self) -> dict:  # noqa: D102
        config = self.config
        networks, physics, effects = [], [], list(self.network_effect)
        for name, parameter in self.network.named_parameters():
            if name.startswith("effects."):
                part = effects
            else:  # constants lie in the network itself and in its kernel model, weights in its layers
                part = networks if "." in name.removeprefix("kernel.") else physics
            part.append(parameter)
        optimizer = torch.optim.AdamW(
            [
                {"params": networks, "lr": config.learning_rate, "weight_decay": config.weight_decay},
                {"params": physics, "lr": config.physics_learning_rate, "weight_decay": 0.0},
                {"params": effects, "lr": config.effect_learning_rate, "weight_decay": 0.0},
            ]
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self._learning_rate_share)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def _learning_rate_share(self, step: int) -> float:
        """One cosine to zero over the steps, and another one over those in which devices settle."""
        config = self.config
        done = step / config.steps if step < config.steps else (step - config.steps) / max(config.focus.settle_steps, 1)
        return 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))


def _alignment(state: Tensor, step: Step) -> Tensor:
    """Discrepancy between operators of measured networks and of unlabelled graphs; 0 where a step lacks either."""
    node_graph = step.graphs[4]
    measured, unlabelled = state[step.is_model[node_graph]], state[(step.weight == 0)[node_graph]]
    if not len(measured) or not len(unlabelled):
        return state.sum() * 0
    return central_moment_discrepancy(measured, unlabelled)
