"""What frameworks, measured devices and measuring machines differ by: random effects with priors, shared by all rows.

A mixed model (Laird and Ware 1982): the network explains what follows from graph, device figures and conditions, and
effects explain what does not. Each is drawn towards zero by its prior, so that a stack that one network was measured
under stays near to what stacks are like.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from gnnperf.conditions import Stack
from gnnperf.graph.opgraph import OpClass
from gnnperf.nn.kernel import NUM_CLASSES, product_mask

# Prior standard deviations (of the logarithm) between stacks, and between the campaigns of one stack. Hosts differ much
# (processor, interpreter), kernels little: frameworks share cuDNN and cuBLAS for products, but bring kernels of their
# own for everything else.
_DEVIATION = {
    "host": (0.5, 0.5),
    "product": (0.15, 0.08),
    "other": (0.4, 0.08),
    "backward": (0.2, 0.1),
    "constant": (1.0, 1.0),
    "copy": (0.5, 0.5),
}
# Campaigns of layers and search spaces run under conditions of their own (a session for each layer, networks of small
# kernels): they teach how costs vary, not how high they are.
_OWN_LEVEL_DEVIATION = 0.5
_OWN_LEVEL = [list(_DEVIATION).index(name) for name in ("product", "other", "backward")]
# A stack's effect on an operator class is how many kernels it makes of one operator (Caffe's batch normalisation, say,
# is a dozen): most of them none to speak of, a few of them large, hence Student's t. Products have none: all stacks
# call the same libraries for them. They differ most in normalisation: fused, several broadcasts, or calls of BLAS.
_CLASS_DEVIATION, _NORMALISATION_DEVIATION = 0.3, 0.6
_CLASS_FREEDOM = 2.0
# What a measured device is off by in products and in all other operators; in backward passes, and in half precision.
_DEVICE_DEVIATION = (0.15, 0.15, 0.3, 0.3)
SETTLING_EFFECTS = slice(2, None)
"""Columns of :attr:`RandomEffects.device` that are fitted when devices settle, and never before.

Until then constants that all devices share have to explain what a backward pass and half precision cost.
"""


class EffectValues(NamedTuple):
    """Logarithms; G graphs, N operators.

    Attributes:
        host: ``[G]`` of launch times.
        backward: ``[G]`` of the backward pass.
        constant: ``[G]`` of the constant.
        copy: ``[G]`` of the bandwidth of host-to-device copies.
        kernels: ``[N]`` kernels that a stack makes of an operator; counts on host and device.
        device: ``[N]`` device time.
    """

    host: Tensor
    backward: Tensor
    constant: Tensor
    copy: Tensor
    kernels: Tensor
    device: Tensor


class RandomEffects(nn.Module):
    """Effects of stacks, of stacks on operator classes, of measured devices, and of measurement campaigns.

    Args:
        campaigns: number of campaigns (one source on one machine).
        own_level: numbers of the campaigns, from 1, that measured layers and search spaces alone.
        devices: number of devices that were measured.
    """

    def __init__(self, campaigns: int, own_level: tuple[int, ...], devices: int) -> None:
        super().__init__()
        effects = len(_DEVIATION)
        self.stack = nn.Parameter(torch.zeros(len(Stack), effects))
        self.stack_class = nn.Parameter(torch.zeros(len(Stack), NUM_CLASSES))
        # Row 0 belongs to no campaign or device in particular and stays zero.
        self.campaign = nn.Parameter(torch.zeros(campaigns + 1, len(Stack), effects))
        self.device = nn.Parameter(torch.zeros(devices + 1, len(_DEVICE_DEVIATION)))

        deviation = torch.tensor(list(_DEVIATION.values()))
        campaign = deviation[:, 1].repeat(campaigns + 1, 1)
        for number in own_level:
            campaign[number, _OWN_LEVEL] = _OWN_LEVEL_DEVIATION
        self.register_buffer("is_product", product_mask(), persistent=False)
        by_class = torch.full((NUM_CLASSES,), _CLASS_DEVIATION)
        by_class[[OpClass.BATCH_NORM, OpClass.LAYER_NORM, OpClass.LRN]] = _NORMALISATION_DEVIATION
        self.register_buffer("class_deviation", by_class, persistent=False)
        self.register_buffer("device_deviation", torch.tensor(_DEVICE_DEVIATION), persistent=False)
        self.register_buffer("stack_deviation", deviation[:, 0], persistent=False)
        self.register_buffer("campaign_deviation", campaign[:, None], persistent=False)

    def forward(
        self,
        stack: Tensor,
        campaign: Tensor,
        device: Tensor,
        half: Tensor,
        op_class: Tensor,
        node_graph: Tensor,
        teaches_stack: Tensor | None = None,
    ) -> EffectValues:
        """Effects on a batch.

        Args:
            stack: ``[G]``.
            campaign: ``[G]``, 0 for none in particular.
            device: ``[G]`` number of the measured device, 0 for any other.
            half: ``[G]`` whether it computes in half precision.
            op_class: ``[N]`` values of :class:`OpClass`.
            node_graph: ``[N]``.
            teaches_stack: ``[G]`` whether a graph's error may move the effects of its stack (training alone).
        """
        by_stack, by_class = self.stack[stack], self.stack_class[stack[node_graph], op_class]
        if teaches_stack is not None:
            by_stack = torch.where(teaches_stack[:, None], by_stack, by_stack.detach())
            by_class = torch.where(teaches_stack[node_graph], by_class, by_class.detach())
        by_campaign = self.campaign.flatten(0, 1)[campaign * len(Stack) + stack] * (campaign > 0)[:, None]
        host, product, other, backward, constant, copy = (by_stack + by_campaign).unbind(1)
        measured = self.device[device] * (device > 0)[:, None]
        of_products, of_others, of_backward, of_half = measured.unbind(1)
        of_half = of_half * half
        kinds = torch.stack([other + of_others + of_half, product + of_products + of_half], dim=1)
        of_product = self.is_product[op_class]
        others, products = kinds[node_graph].unbind(1)
        of_device = torch.lerp(others, products, of_product)
        return EffectValues(host, backward + of_backward, constant, copy, by_class * (1 - of_product), of_device)

    def penalty(self) -> Tensor:
        """Negative log prior, up to a factor and a constant."""
        by_class = (self.stack_class / self.class_deviation).square()
        return (
            (self.stack / self.stack_deviation).square().sum()
            + (self.campaign / self.campaign_deviation).square().sum()
            + (self.device / self.device_deviation).square().sum()
            + _CLASS_FREEDOM * torch.log1p(by_class / _CLASS_FREEDOM).sum()
        )
