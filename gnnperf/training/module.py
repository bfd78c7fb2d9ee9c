"""The Lightning module: one optimisation step of the latency network."""

from __future__ import annotations

import lightning
import torch
from torch import Tensor

from gnnperf.errors import TrainingError
from gnnperf.nn.losses import LOSSES
from gnnperf.nn.network import LatencyNetwork
from gnnperf.training.config import OptimisationConfig
from gnnperf.training.samples import Step

_LARGEST_GRADIENT = 1.0


class LatencyModule(lightning.LightningModule):
    """Fits a :class:`LatencyNetwork` on mixed steps of whole models, search spaces, layers and unlabelled graphs."""

    def __init__(self, network: LatencyNetwork, config: OptimisationConfig) -> None:
        super().__init__()
        self.network = network
        self.config = config

    def training_step(self, step: Step, _: int) -> Tensor:  # noqa: D102
        config = self.config
        # Effects of campaigns and context corrections are switched off at random, so that what remains predicts alone.
        # Seeded by the step itself, dropout too: a resumed run draws what an uninterrupted one would have drawn.
        torch.manual_seed(step.seed)
        num_graphs = step.latency_ms.shape[0]
        context_on = (torch.rand(num_graphs) >= config.context_dropout).float()
        campaign_on = torch.rand(num_graphs) >= config.campaign_dropout
        conditions = step.conditions.clone()
        conditions[:, 5] *= campaign_on
        predicted = self.network(*step.graphs, step.device, conditions, context_on)
        labelled = step.weight > 0
        loss = LOSSES[config.loss](
            predicted.latency_ms[labelled], step.latency_ms[labelled], step.weight[labelled], config.beta
        )
        on_unlabelled = (~labelled)[step.graphs[4]].float()[:, None] * 4 + 1
        correction = (predicted.local.square() * on_unlabelled).mean() + (
            predicted.context.square() * on_unlabelled
        ).mean()
        total = loss + config.correction_weight * correction + config.effect_weight * self.network.effect_penalty()
        with torch.no_grad():
            error = (predicted.latency_ms / step.latency_ms.clamp_min(1e-9) - 1).abs()[labelled & step.is_model]
            self.log("loss", loss, prog_bar=True)
            self.log("mape", error.mean() * 100, prog_bar=True)
        return total

    def configure_gradient_clipping(self, *_: object, **__: object) -> None:
        """Bound the norm of all gradients together.

        Raises:
            TrainingError: the norm is not finite, so the step would ruin every weight.
        """
        norm = torch.nn.utils.clip_grad_norm_(self.parameters(), _LARGEST_GRADIENT)
        if not torch.isfinite(norm):
            raise TrainingError(
                f"the loss or its gradient is no longer finite at step {self.global_step}: lower the learning rates"
            )

    def configure_optimizers(self) -> dict:  # noqa: D102
        config = self.config
        networks, physics, effects = [], [], []
        for name, parameter in self.network.named_parameters():
            if name.endswith("_effect"):
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
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
