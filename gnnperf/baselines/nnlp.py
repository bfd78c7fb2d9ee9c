"""NNLP: a plain GraphSAGE over the operator graph, sum pooling, a head for each platform."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv, global_add_pool

from gnnperf.baselines.fitting import Standardiser, dense_layers, fit_module, squared_log_error
from gnnperf.baselines.whole_models import row_graphs, whole_model_rows
from gnnperf.devices.roofline import memory_bytes
from gnnperf.errors import DataError
from gnnperf.graph import GraphArrays, OpClass, collate

if TYPE_CHECKING:
    import pandas as pd

    from gnnperf.conditions import Phase
    from gnnperf.datasets.graph_store import GraphStore
    from gnnperf.devices import Device

_WIDTH, _DEPTH = 64, 3
_POOL_SCALE = 0.01  # sums run over hundreds of operators


class NNLPBaseline:
    """GraphSAGE on operator types and sizes, summed over operators, one head a platform; no edge sizes, no physics.

    Liu, Shen, Gong, Wang, Zhou, Wang, Li: NNLQP: A Multi-Platform Neural Network Latency Query and Prediction System
    with An Evolving Database. ICPP 2022; the predictor, NNLP. As there: nodes are operators with their type, one-hot,
    and their attributes and output shape; GraphSAGE embeds them along the data flow; the sum over nodes is joined by
    static features of the whole (batch, FLOPs, parameters, memory accesses); every platform has a head of fully
    connected layers above the common trunk.

    Ours to choose: three SAGE layers of 64; a platform is a device and phase (not a stack: it is asked for none); the
    loss is on the logarithm of the latency; whole networks alone, 1,000 of search spaces at most, 40 passes. A platform
    that was not measured has no head, so nothing is said of it.
    """

    name = "nnlp"
    paper = (
        "Liu et al.: NNLQP: A Multi-Platform Neural Network Latency Query and Prediction System with An Evolving "
        "Database, ICPP 2022"
    )
    epochs = 40
    most_in_spaces = 1000

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._platforms: dict[tuple[str, str], int] = {}

    def fit(self, rows: pd.DataFrame, graphs: GraphStore) -> Self:
        """See :class:`gnnperf.baselines.baseline.Baseline`; takes whole networks."""
        rows = whole_model_rows(rows, self.most_in_spaces, self.seed)
        own = row_graphs(rows, graphs)
        names = list(zip(rows["device"].astype(str), rows["phase"].astype(str), strict=True))
        self._platforms = {name: number for number, name in enumerate(dict.fromkeys(names))}
        platform = torch.tensor([self._platforms[name] for name in names])
        self._node_scale = Standardiser(np.concatenate([_operators(graph) for graph in own]))
        self._static_scale = Standardiser(np.array([_static(graph) for graph in own]))
        latency_ms = rows["latency_ms"].to_numpy()

        def make() -> nn.Module:
            inputs = len(self._node_scale.mean), len(self._static_scale.mean)
            return _PlainSAGE(*inputs, len(self._platforms), latency_ms)

        def gather(chosen: Tensor) -> tuple[Tensor, ...]:
            return self._arguments([own[row] for row in chosen.tolist()], platform[chosen])

        self._network = fit_module(
            make, gather, latency_ms, squared_log_error, epochs=self.epochs, batch_size=32, seed=self.seed
        )
        return self

    def predict(self, graph: GraphArrays, device: Device, batch: int, phase: Phase) -> float:
        """See :class:`gnnperf.baselines.baseline.Baseline`."""
        platform = self._platforms.get((device.slug, phase.value))
        if platform is None:
            raise DataError(
                f"{self.name} has no head for {phase} on {device.slug}: none of its rows was measured there"
            )
        with torch.no_grad():
            return float(self._network(*self._arguments([graph], torch.tensor([platform])))[0])

    def _arguments(self, graphs: list[GraphArrays], platform: Tensor) -> tuple[Tensor, ...]:
        joined = collate(graphs)
        return (
            self._node_scale(np.concatenate([_operators(graph) for graph in graphs])),
            torch.from_numpy(joined.edge_index.astype(np.int64)),
            torch.from_numpy(joined.node_graph.astype(np.int64)),
            self._static_scale(np.array([_static(graph) for graph in graphs])),
            platform,
        )


class _PlainSAGE(nn.Module):
    def __init__(self, operator_inputs: int, static_inputs: int, platforms: int, latency_ms: np.ndarray) -> None:
        super().__init__()
        widths = (operator_inputs, *[_WIDTH] * _DEPTH)
        self.convolutions = nn.ModuleList(SAGEConv(a, b) for a, b in pairwise(widths))
        self.hidden = nn.Sequential(*dense_layers(_WIDTH + static_inputs, _WIDTH))
        self.head = nn.Parameter(torch.randn(platforms, _WIDTH) * 0.01)
        self.bias = nn.Parameter(torch.full((platforms,), float(np.log(latency_ms).mean())))

    def forward(
        self, operators: Tensor, edge_index: Tensor, node_graph: Tensor, static: Tensor, platform: Tensor
    ) -> Tensor:
        state = operators
        for convolution in self.convolutions:
            state = torch.relu(convolution(state, edge_index))
        pooled = global_add_pool(state, node_graph, len(static)) * _POOL_SCALE
        hidden = self.hidden(torch.cat([pooled, static], dim=1))
        return torch.exp((hidden * self.head[platform]).sum(dim=1) + self.bias[platform])


def _operators(graph: GraphArrays) -> np.ndarray:
    """``[N, F]`` operator type one-hot, logarithms of its sizes."""
    return np.column_stack([np.eye(len(OpClass))[graph.op_class], np.log1p(graph.node)])


def _static(graph: GraphArrays) -> np.ndarray:
    """Logarithms of batch, FLOPs, bytes of parameters and bytes moved."""
    totals = (graph.column("flops").sum(), graph.column("weight_bytes").sum(), memory_bytes(graph).sum())
    return np.log1p([graph.batch, *totals])
