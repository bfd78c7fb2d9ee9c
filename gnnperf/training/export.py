"""The trained network as an ONNX file that onnxruntime runs without torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from gnnperf.devices.features import DEVICE_FIELDS
from gnnperf.files import write_whole
from gnnperf.graph.arrays import NODE_FIELDS
from gnnperf.nn.network import LatencyNetwork
from gnnperf.training.quiet import quiet

INPUTS = ("op_class", "node", "edge_index", "edge_bytes", "node_graph", "graph", "device", "conditions")
OUTPUTS = ("latency_ms", "node_ms")


class _Exported(nn.Module):
    """The two outputs that prediction needs, as a tuple."""

    def __init__(self, network: LatencyNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        prediction = self.network(*inputs)
        return prediction.latency_ms, prediction.node_ms


def example_inputs(nodes: int = 7, edges: int = 9, graphs: int = 2, seed: int = 0) -> tuple[Tensor, ...]:
    """Random inputs of valid shapes and ranges, in the order of :data:`INPUTS`."""
    random = np.random.default_rng(seed)
    node = random.integers(1, 1000, (nodes, len(NODE_FIELDS))).astype(np.float32)
    node_graph = np.sort(random.integers(0, graphs, nodes))
    conditions = np.zeros((graphs, 7), np.int64)
    conditions[:, 0] = np.arange(graphs) % 2 * 3  # inference and training in turn
    return (
        torch.from_numpy(random.integers(1, 16, nodes)),
        torch.from_numpy(node),
        torch.from_numpy(random.integers(0, nodes, (2, edges))),
        torch.from_numpy(random.integers(1, 10**6, edges).astype(np.float32)),
        torch.from_numpy(node_graph),
        torch.from_numpy(random.integers(1, 10**6, (graphs, 3)).astype(np.float32)),
        torch.from_numpy(random.uniform(1e3, 1e6, (graphs, len(DEVICE_FIELDS))).astype(np.float32)),
        torch.from_numpy(conditions),
    )


def export_network(network: LatencyNetwork, path: Path) -> None:
    """Write ``path`` (atomically), with numbers of operators, tensors and graphs left free.

    ``dynamo=True`` is needed: the older exporter fixes the sizes of the scatter operations without a word.
    """
    nodes, edges, graphs = (torch.export.Dim(name, min=1) for name in ("operators", "tensors", "graphs"))
    shapes = ({0: nodes}, {0: nodes}, {1: edges}, {0: edges}, {0: nodes}, {0: graphs}, {0: graphs}, {0: graphs})
    network = network.eval()
    with quiet("torch.onnx", "onnx_ir", "onnxscript", prints=True):
        program = torch.onnx.export(
            _Exported(network),
            example_inputs(),
            dynamo=True,
            input_names=list(INPUTS),
            output_names=list(OUTPUTS),
            dynamic_shapes=(shapes,),
            external_data=False,
        )
    model = program.model_proto
    # Where in the source each node came from is two thirds of the file, and half of the time to load it.
    for node in model.graph.node:
        node.ClearField("metadata_props")
        node.ClearField("doc_string")
    del model.graph.value_info[:]
    write_whole(path, model.SerializeToString())
