"""GraphSAGE over a data-flow graph: messages run along and against the flow, and each sees its tensor's size."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing


class DataFlowSAGE(MessagePassing):
    """One GraphSAGE convolution (Hamilton et al. 2017, algorithm 1) in one direction of the data flow.

    ``h_i' = aggregate_j relu(W h_j + V e_ji)``, where ``e_ji`` are the features of the tensor between j and i. The
    operator's own state is combined by :class:`ResidualSAGE`, which adds both directions.

    Args:
        width: size of the operator states.
        edge_width: size of the edge features; 0 leaves them out.
        aggregator: ``"mean"``, ``"sum"`` or ``"max"``.
    """

    def __init__(self, width: int, edge_width: int, aggregator: str = "mean") -> None:
        super().__init__(aggr=aggregator)
        self.neighbour = nn.Linear(width, width)
        self.tensor = nn.Linear(edge_width, width, bias=False) if edge_width else None

    def forward(self, state: Tensor, edge_index: Tensor, edge: Tensor) -> Tensor:
        """Aggregate ``state`` ``[N, width]`` over ``edge_index`` ``[2, E]`` with ``edge`` ``[E, edge_width]``."""
        tensor = self.tensor(edge) if self.tensor is not None else torch.zeros_like(edge[:, :1])
        return self.propagate(edge_index, state=self.neighbour(state), tensor=tensor)

    def message(self, state_j: Tensor, tensor: Tensor) -> Tensor:  # noqa: D102
        return torch.relu(state_j + tensor)


class ResidualSAGE(nn.Module):
    """Residual block: ``h + dropout(relu(norm(W h + along(h) + against(h))))``.

    Args:
        width: size of the operator states.
        edge_width: size of the edge features; 0 leaves them out.
        aggregator: see :class:`DataFlowSAGE`.
        dropout: share of the block's output that is dropped in training.
    """

    def __init__(self, width: int, edge_width: int, aggregator: str, dropout: float) -> None:
        super().__init__()
        self.own = nn.Linear(width, width)
        self.along = DataFlowSAGE(width, edge_width, aggregator)
        self.against = DataFlowSAGE(width, edge_width, aggregator)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, state: Tensor, edge_index: Tensor, edge: Tensor) -> Tensor:
        """New states ``[N, width]``."""
        update = self.own(state) + self.along(state, edge_index, edge) + self.against(state, edge_index.flip(0), edge)
        return state + self.dropout(torch.relu(self.norm(update)))
