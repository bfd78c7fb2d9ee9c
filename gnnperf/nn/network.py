"""The latency network: ONNX operators in, whole-model milliseconds out, trained end to end on whole-model timings.

Every operator gets a device time and a host (launch) time. Both start from an analytic model and are corrected within
bounds: by a local network that knows the operator alone, and by a residual GraphSAGE network that knows its context
(fusion, cache reuse, overlap). The bounds are what makes the network transfer to families it has never seen;
docs/network.md has the whole picture.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gnnperf.conditions import Optimizer, Phase, Precision, Stack, Window
from gnnperf.devices.features import DEVICE_FIELDS
from gnnperf.graph.arrays import FIELD, NODE_FIELDS
from gnnperf.graph.opgraph import OpClass
from gnnperf.nn.effects import RandomEffects
from gnnperf.nn.kernel import NUM_CLASSES, KernelModel, product_mask, smooth_max
from gnnperf.nn.sage import ResidualSAGE

# What an operator's parameter gradient and update touch, in bytes per byte of weights (read and written; Kingma and Ba
# 2015 for Adam's two moments). Starting values: the network learns a factor for each.
_UPDATE_TRAFFIC = {
    Optimizer.NONE: 0.0,
    Optimizer.SGD: 3.0,
    Optimizer.MOMENTUM: 5.0,
    Optimizer.ADAM: 7.0,
    Optimizer.ADADELTA: 7.0,
    Optimizer.ADAGRAD: 5.0,
    Optimizer.RMSPROP: 7.0,
}
_BYTES_SCALE = {Precision.FP32: 1.0, Precision.FP16: 0.5, Precision.FP64: 2.0}
# forward, backward, update: which parts of a step each phase is made of.
_PHASE_PARTS = {
    Phase.INFERENCE: (1.0, 0.0, 0.0),
    Phase.FORWARD: (1.0, 0.0, 0.0),
    Phase.BACKWARD: (0.0, 1.0, 0.0),
    Phase.TRAINING: (1.0, 1.0, 1.0),
}
_COPY_SHARE = {Window.DEVICE: 1.0, Window.PINNED_COPY: 0.75, Window.PAGEABLE_COPY: 0.35, Window.SESSION: 0.35}
_UPDATE_BANDWIDTH_SHARE = 0.75
_WORK_FIELDS = (
    "gemm_m",
    "gemm_n",
    "gemm_k",
    "gemm_count",
    "input_bytes",
    "output_bytes",
    "weight_bytes",
    "flops",
    "macs",
)
_LAUNCH_FIELDS = ("kernel_h", "kernel_w", "stride", "dilation", "gemm_count")
_LAUNCH_BOUND = 0.6
_LAUNCH_DEVIATION = 0.3  # prior standard deviation between operator classes
# Host and device overlap as a p-norm: 6 is nearly their maximum, with room for launches that come too late.
_OVERLAP, _OVERLAP_DEVIATION = 6.0, 0.3
_DEVICE_SHARE_BOUND = 0.4
_HALF = list(Precision).index(Precision.FP16)
_DEVICE = {name: index for index, name in enumerate(DEVICE_FIELDS)}
# A device's make-up as ratios, over their typical values: a device that is faster in every respect keeps all of them.
_DEVICE_RATIOS = (
    ("peak_flops", "bandwidth_bytes_s", 20.0),
    ("tensor_flops", "peak_flops", 1.0),
    ("peak_fp32_flops", "peak_flops", 1.0),
    ("cores", "sm_count", 100.0),
)


@dataclass(frozen=True)
class NetworkConfig:
    """Architecture of :class:`LatencyNetwork`.

    Attributes:
        depth: GraphSAGE blocks; 0 leaves the context out.
        width: size of the operator states.
        local_width: hidden size of the local correction of products.
        aggregator: ``"mean"``, ``"sum"`` or ``"max"``.
        edge_features: whether messages see their tensor's size.
        readout: ``"roofline"`` (additive, the default) or ``"pooled"`` (mean and sum of states to a latency).
        dropout: in the GraphSAGE blocks.
        tiled_kernels: see :class:`KernelModel`.
        launches: whether host time is modelled; without, a latency is device time alone.
        local_bound: largest log correction from the operator alone.
        context_bound: largest log correction from the context.
        campaigns: measurement campaigns (a source on a machine, or in a search space); each has an effect beside
            the stack's.
        own_level_campaigns: those among them that measured layers and search spaces alone.
        devices: slugs of measured devices, which have an effect of their own too.
    """

    depth: int = 2
    width: int = 64
    local_width: int = 64
    aggregator: str = "mean"
    edge_features: bool = True
    readout: str = "roofline"
    dropout: float = 0.0
    tiled_kernels: bool = True
    launches: bool = True
    local_bound: float = 1.5
    context_bound: float = 0.6
    campaigns: tuple[str, ...] = ()
    own_level_campaigns: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()

    def to_dict(self) -> dict:
        """Plain data for YAML, JSON and checkpoints."""
        return asdict(self)


@dataclass
class Prediction:
    """What the network says of G graphs with N operators; milliseconds throughout.

    Attributes:
        latency_ms: ``[G]``.
        node_ms: ``[N]`` each operator's part of it.
        local: ``[N, 2]`` and context: ``[N, 2]``: the corrections of forward and backward, for regularisation.
        launch: ``[N]`` the correction of launch times, for the same.
        state: ``[N, width]`` operator states after message passing.
    """

    latency_ms: Tensor
    node_ms: Tensor
    local: Tensor
    context: Tensor
    launch: Tensor
    state: Tensor


class _Work(NamedTuple):
    """What operators have to do, ``[N]`` each; ``product`` is m, n, k, count."""

    product: tuple[Tensor, ...]
    moved_bytes: Tensor
    weight_bytes: Tensor
    other_flops: Tensor


def _mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    last = nn.Linear(hidden, outputs)
    nn.init.zeros_(last.weight)  # start at the analytic model: no correction
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(inputs, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), last)


def _sum_by_graph(values: Tensor, node_graph: Tensor, num_graphs: int) -> Tensor:
    return torch.zeros(num_graphs, dtype=values.dtype, device=values.device).index_add(0, node_graph, values)


class LatencyNetwork(nn.Module):
    """Residual GraphSAGE with a roofline readout.

    ``latency = smooth_max(sum of host times, sum of device times) + constant + input copy``

    Host times are launch costs by operator class, scaled by the stack; device times come from :class:`KernelModel`.
    Stack, measured device and measurement campaign enter as shared :class:`RandomEffects`. The host-to-device copy is
    never corrected by the network.
    """

    OPERATOR_TRAITS = 4  # from KernelModel
    EDGE_WIDTH = 3

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        class_width, stack_width = 16, 6
        device_width = len(_DEVICE_RATIOS) + len(Precision)

        self.kernel = KernelModel(config.tiled_kernels)
        self.class_embedding = nn.Embedding(NUM_CLASSES, class_width)
        inputs = len(NODE_FIELDS) + self.OPERATOR_TRAITS + class_width + len(Precision)
        self.local = _mlp(inputs, config.local_width, 2)
        # The device enters corrections through dimensionless traits and ratios alone, and launches not at all: a faster
        # device must not become slower by being described differently.
        self.device_share = _mlp(device_width - 1, 16, 2)
        self.device_balance = nn.Parameter(torch.zeros(2))
        self.launch = _mlp(class_width + len(_LAUNCH_FIELDS), 32, 1)

        edge_width = self.EDGE_WIDTH if config.edge_features else 0
        self.encoder = nn.Linear(inputs, config.width)
        self.blocks = nn.ModuleList(
            ResidualSAGE(config.width, edge_width, config.aggregator, config.dropout) for _ in range(config.depth)
        )
        self.context = _mlp(config.width, config.width, 2)
        if config.readout == "pooled":
            self.stack_embedding = nn.Embedding(len(Stack), stack_width)
            self.pooled = _mlp(2 * config.width + device_width + stack_width + len(Phase), config.width, 1)
        elif config.readout != "roofline":
            raise ValueError(f"readout must be 'roofline' or 'pooled', not {config.readout!r}")

        host_ms = torch.full((NUM_CLASSES,), math.log(0.010))
        host_ms[OpClass.VIEW] = math.log(0.002)
        self.log_host_ms = nn.Parameter(host_ms)
        self.register_buffer("initial_log_host_ms", host_ms.clone(), persistent=False)
        # What a forward pass costs more when it is part of a training step (batch statistics, dropout); softplus, so
        # that it never costs less. Products are the same in both.
        self.train_forward = nn.Parameter(torch.full((NUM_CLASSES,), -4.0))
        self.log_backward_memory = nn.Parameter(torch.full((NUM_CLASSES,), math.log(1.5)))
        self.log_backward_compute = nn.Parameter(torch.zeros(2))  # input gradient, weight gradient
        self.log_backward_host = nn.Parameter(torch.tensor(math.log(1.5)))
        self.log_update = nn.Parameter(torch.zeros(len(Optimizer)))
        self.log_update_host_ms = nn.Parameter(torch.full((len(Optimizer),), math.log(0.005)))
        self.log_constant_ms = nn.Parameter(torch.full((2,), math.log(0.05)))  # of the forward and backward parts
        self.log_copy_share = nn.Parameter(torch.tensor([math.log(_COPY_SHARE[window]) for window in Window]))
        self.tensor_core_use = nn.Parameter(torch.tensor(0.0))
        self.log_overlap = nn.Parameter(torch.tensor(math.log(_OVERLAP)))

        own_level = tuple(config.campaigns.index(name) + 1 for name in config.own_level_campaigns)
        self.effects = RandomEffects(len(config.campaigns), own_level, len(config.devices))

        def table(values: list) -> Tensor:
            return torch.tensor(values, dtype=torch.float32)

        self.register_buffer("is_product", product_mask(), persistent=False)
        self.register_buffer("update_traffic", table([_UPDATE_TRAFFIC[o] for o in Optimizer]), persistent=False)
        self.register_buffer("bytes_scale", table([_BYTES_SCALE[p] for p in Precision]), persistent=False)
        self.register_buffer("phase_parts", table([_PHASE_PARTS[p] for p in Phase]), persistent=False)

    def forward(
        self,
        op_class: Tensor,
        node: Tensor,
        edge_index: Tensor,
        edge_bytes: Tensor,
        node_graph: Tensor,
        graph: Tensor,
        device: Tensor,
        conditions: Tensor,
        context_on: Tensor | None = None,
        teaches_stack: Tensor | None = None,
    ) -> Prediction:
        """Predict.

        Args:
            op_class: ``[N]`` int64, see :class:`OpClass`.
            node: ``[N, len(NODE_FIELDS)]`` raw quantities.
            edge_index: ``[2, E]`` int64.
            edge_bytes: ``[E]``.
            node_graph: ``[N]`` int64.
            graph: ``[G, 3]`` bytes in, bytes out, batch.
            device: ``[G, len(DEVICE_FIELDS)]`` raw, SI units, for the graph's precision.
            conditions: ``[G, 7]`` int64: phase, precision, stack, window, optimizer, campaign and measured device (0:
                none in particular).
            context_on: ``[G]`` 1 or 0, switches the context correction of whole graphs off (dropout in training).
            teaches_stack: ``[G]``, see :class:`RandomEffects`.
        """
        num_graphs = graph.shape[0]
        phase, precision, stack, window, optimizer, campaign, measured = conditions.unbind(1)
        half = precision == _HALF
        effect = self.effects(stack, campaign, measured, half, op_class, node_graph, teaches_stack)
        kernels = torch.exp(effect.kernels)
        device_factor = kernels * torch.exp(effect.device)

        device_input = self._device_input(device, precision)
        work = self._work(op_class, node)
        hardware = self._hardware(op_class, node_graph, device, device_input, precision)
        forward_ms, traits = self.kernel(op_class, node, work.product, work.moved_bytes, work.other_flops, *hardware)

        classes = self.class_embedding(op_class)
        precision_input = nn.functional.one_hot(precision, len(Precision)).float()[node_graph]
        features = torch.cat([torch.log1p(node) / 8, traits, classes, precision_input], dim=1)
        local = self.config.local_bound * torch.tanh(self.local(features)) * self.is_product[op_class][:, None]
        l2_bytes = device[:, _DEVICE["l2_bytes"]][node_graph]
        state = self._states(features, edge_index, edge_bytes, l2_bytes)
        context = self.config.context_bound * torch.tanh(self.context(state)) * min(self.config.depth, 1)
        if context_on is not None:
            context = context * context_on[node_graph][:, None]

        correction = local + context
        in_training = (phase != 0).float()[node_graph] * (1 - self.is_product[op_class])
        train_forward = in_training * nn.functional.softplus(self.train_forward[op_class])
        forward_ms = forward_ms * device_factor * torch.exp(correction[:, 0] + train_forward)
        backward_ms = self._backward_ms(op_class, node, work, hardware, edge_index)
        backward_ms = backward_ms * device_factor * torch.exp(correction[:, 1] + effect.backward[node_graph])
        bandwidth_bytes_s = hardware[1]
        update = optimizer[node_graph]
        traffic = self.update_traffic[update] * torch.exp(self.log_update[update])
        update_ms = 1e3 * work.weight_bytes * traffic / (_UPDATE_BANDWIDTH_SHARE * bandwidth_bytes_s)

        host_factor = torch.exp(effect.host[node_graph])
        launch = self._launch_correction(node, classes)
        launch_ms = torch.exp(self.log_host_ms[op_class] + launch) * node[:, FIELD["repeats"]].clamp_min(1.0)
        launch_ms = launch_ms * host_factor * kernels
        updates = (work.weight_bytes > 0).float() * (update > 0)
        update_launch_ms = updates * torch.exp(self.log_update_host_ms[update]) * host_factor

        parts = self.phase_parts[phase]
        forward_part, backward_part, update_part = parts[node_graph].unbind(1)
        node_device_ms = forward_part * forward_ms + backward_part * backward_ms + update_part * update_ms
        launches = forward_part + backward_part * torch.exp(self.log_backward_host)
        node_host_ms = (launches * launch_ms + update_part * update_launch_ms) * self.config.launches
        busy_ms, node_ms = self._overlap(node_host_ms, node_device_ms, node_graph, num_graphs)

        copied_bytes = (graph[:, 0] * (window > 0) + graph[:, 1] * (window == 3)) * self.bytes_scale[precision]
        copy_bytes_s = device[:, _DEVICE["pcie_bytes_s"]] * torch.exp(self.log_copy_share[window] - effect.copy)
        constant_ms = (parts[:, :2] @ torch.exp(self.log_constant_ms)) * torch.exp(effect.constant)
        latency_ms = busy_ms + constant_ms + 1e3 * copied_bytes / copy_bytes_s

        if self.config.readout == "pooled":
            factor = self._pooled_factor(state, node_graph, num_graphs, device_input, stack, phase)
            latency_ms, node_ms = latency_ms * factor, node_ms * factor[node_graph]
        return Prediction(latency_ms, node_ms, local, context, launch, state)

    def _device_input(self, device: Tensor, precision: Tensor) -> Tensor:
        """``[G, D]`` logarithms of :data:`_DEVICE_RATIOS`, and the precision."""
        ratios = [
            torch.log(device[:, _DEVICE[above]] / device[:, _DEVICE[below]] / typical)
            for above, below, typical in _DEVICE_RATIOS
        ]
        return torch.cat([torch.stack(ratios, dim=1), nn.functional.one_hot(precision, len(Precision)).float()], dim=1)

    @staticmethod
    def _work(op_class: Tensor, node: Tensor) -> _Work:
        columns = {name: node[:, FIELD[name]] for name in _WORK_FIELDS}
        all_bytes = columns["input_bytes"] + columns["output_bytes"] + columns["weight_bytes"]
        return _Work(
            product=tuple(columns[name] for name in ("gemm_m", "gemm_n", "gemm_k", "gemm_count")),
            moved_bytes=torch.where(op_class == OpClass.VIEW, torch.zeros_like(all_bytes), all_bytes),
            weight_bytes=columns["weight_bytes"],
            other_flops=(columns["flops"] - 2 * columns["macs"]).clamp_min(0.0),
        )

    def _hardware(
        self,
        op_class: Tensor,
        node_graph: Tensor,
        device: Tensor,
        device_input: Tensor,
        precision: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """``[N]`` rate in FLOP/s, bandwidth in FP32-equivalent bytes/s, and multiprocessors, as each operator sees."""
        share = self._device_share(device_input)
        peak = device[:, _DEVICE["peak_flops"]]
        # Products reach tensor cores in part: somewhere between the ordinary peak and theirs.
        tensor_ratio = (device[:, _DEVICE["tensor_flops"]] / peak)[node_graph]
        gain = tensor_ratio ** torch.sigmoid(self.tensor_core_use)
        gain = torch.where(self.is_product[op_class] > 0, gain, torch.ones_like(gain))
        rate = (peak * torch.exp(share[:, 0]))[node_graph] * gain
        bandwidth = device[:, _DEVICE["bandwidth_bytes_s"]] * torch.exp(share[:, 1])
        return rate, (bandwidth / self.bytes_scale[precision])[node_graph], device[:, _DEVICE["sm_count"]][node_graph]

    def _device_share(self, device_input: Tensor) -> Tensor:
        """``[G, 2]`` logarithms of the shares of peak and bandwidth that a device reaches.

        The higher its peak over its bandwidth, the smaller the share of the peak, and the larger that of the bandwidth:
        both rates grow with peak and bandwidth, so that more of either is never slower.
        """
        balance, others = device_input[:, :1], device_input[:, 1:]
        # A gradient also where the slope is held at its end, or it would stay there.
        slope = self.device_balance + (self.device_balance.clamp(0, 1) - self.device_balance).detach()
        signed = torch.stack([-slope[0], slope[1]])
        return _DEVICE_SHARE_BOUND * torch.tanh(self.device_share(others) + signed * balance)

    def _states(self, features: Tensor, edge_index: Tensor, edge_bytes: Tensor, l2_bytes: Tensor) -> Tensor:
        """``[N, width]`` operator states after message passing; a tensor that fits into L2 may be read from there."""
        state = torch.relu(self.encoder(features))
        size, cache = torch.log1p(edge_bytes), torch.log(l2_bytes)[edge_index[0]]
        edge = torch.stack([size / 16, torch.tanh((size - cache) / 2), torch.sigmoid(cache - size)], dim=1)
        for block in self.blocks:
            state = block(state, edge_index, edge)
        return state

    def _launch_correction(self, node: Tensor, classes: Tensor) -> Tensor:
        fields = torch.log1p(node[:, [FIELD[name] for name in _LAUNCH_FIELDS]])
        return _LAUNCH_BOUND * torch.tanh(self.launch(torch.cat([classes, fields], dim=1))[:, 0])

    def _overlap(
        self, node_host_ms: Tensor, node_device_ms: Tensor, node_graph: Tensor, num_graphs: int
    ) -> tuple[Tensor, Tensor]:
        """``[G]`` time in which host and device work side by side, and each operator's part of it.

        The parts are the gradient of the p-norm times the operator's own times; they sum to it, as it is homogeneous.
        """
        host_ms = _sum_by_graph(node_host_ms, node_graph, num_graphs)
        device_ms = _sum_by_graph(node_device_ms, node_graph, num_graphs)
        exponent = torch.exp(self.log_overlap).clamp(1.5, 12.0)
        busy_ms = smooth_max(host_ms, device_ms, exponent)
        host_weight = (host_ms / busy_ms.clamp_min(1e-9)) ** (exponent - 1)
        device_weight = (device_ms / busy_ms.clamp_min(1e-9)) ** (exponent - 1)
        return busy_ms, host_weight[node_graph] * node_host_ms + device_weight[node_graph] * node_device_ms

    def _pooled_factor(
        self, state: Tensor, node_graph: Tensor, num_graphs: int, device_input: Tensor, stack: Tensor, phase: Tensor
    ) -> Tensor:
        """``[G]`` what the pooled readout multiplies the latency by."""
        size = _sum_by_graph(torch.ones_like(state[:, 0]), node_graph, num_graphs).clamp_min(1.0)
        summed = torch.zeros(num_graphs, state.shape[1]).index_add(0, node_graph, state)
        phase_input = nn.functional.one_hot(phase, len(Phase)).float()
        pooled = [torch.log1p(summed), summed / size[:, None], device_input, self.stack_embedding(stack), phase_input]
        return torch.exp(self.pooled(torch.cat(pooled, dim=1))[:, 0])

    def _backward_ms(
        self, op_class: Tensor, node: Tensor, work: _Work, hardware: tuple[Tensor, Tensor, Tensor], edge_index: Tensor
    ) -> Tensor:
        """Gradients of products are two more products; all other operators move about as much data again."""
        m, n, k, count = work.product
        none = torch.zeros_like(m)

        def kernel_ms(product: tuple[Tensor, ...], moved_bytes: Tensor) -> Tensor:
            return self.kernel(op_class, node, product, moved_bytes, work.other_flops, *hardware)[0]

        input_ms = kernel_ms((m, k, n, count), work.moved_bytes)
        weight_ms = kernel_ms((k, n, m, count), work.moved_bytes)
        other_ms = kernel_ms(
            (none, none, none, count), work.moved_bytes * torch.exp(self.log_backward_memory[op_class])
        )
        # No gradient flows into the network's input, so its first operators compute weight gradients alone.
        has_source = none.index_fill(0, edge_index[1], 1.0)
        input_factor, weight_factor = torch.exp(self.log_backward_compute).unbind(0)
        product_ms = input_ms * has_source * input_factor + weight_ms * weight_factor
        return torch.where(self.is_product[op_class] > 0, product_ms, other_ms * has_source)

    def physics_penalty(self) -> Tensor:
        """Negative log prior of the analytic constants, up to a factor and a constant.

        Gaussian around their textbook values; launch times of operator classes around their common mean, which is free.
        """
        launches = self.log_host_ms - self.initial_log_host_ms
        return (
            self.kernel.penalty()
            + ((launches - launches.mean()) / _LAUNCH_DEVIATION).square().sum()
            + ((self.log_overlap - math.log(_OVERLAP)) / _OVERLAP_DEVIATION).square()
        )
