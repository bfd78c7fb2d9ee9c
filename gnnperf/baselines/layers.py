"""Layers as the per-layer methods see them: a handful of sizes for each convolution, dense layer and pooling.

Justus et al. 2018, PerfNet, ResPerfNet and lookup tables all describe a layer by the arguments that a framework's call
takes, and know nothing of the graph around it. Here these arguments come from a measured row (its ``model`` describes
the layer completely) or from a graph's operators.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Self

import numpy as np

from gnnperf.conditions import Optimizer
from gnnperf.devices import Device, get_device
from gnnperf.devices.features import DEVICE_FIELDS, device_features
from gnnperf.graph.arrays import GraphArrays
from gnnperf.graph.opgraph import OpClass

if TYPE_CHECKING:
    import pandas as pd

    from gnnperf.zoo.layers import Layer


class LayerKind(StrEnum):
    """Layers that per-layer methods have a model for."""

    CONV = "conv"
    DENSE = "dense"
    POOL = "pool"


LAYER_FIELDS: dict[LayerKind, tuple[str, ...]] = {
    LayerKind.CONV: (
        "batch", "image", "kernel", "channels", "filters", "stride", "same_padding", "activation", "bias",
    ),
    LayerKind.DENSE: ("batch", "channels", "filters", "activation"),
    LayerKind.POOL: ("batch", "image", "kernel", "channels", "stride", "same_padding"),
}  # fmt: skip
"""Sizes of each kind: pixels of a side, elements of a kernel's side, channels in and out; the last ones are 0 or 1."""
_FLAGS = ("activation", "bias")
HARDWARE_FIELDS = ("peak_fp32_flops", "bandwidth_bytes_s", "sm_count", "cores", "clock_hz", "l2_bytes", "memory_bytes")
"""Of :data:`gnnperf.devices.features.DEVICE_FIELDS`, what Justus et al. 2018 and PerfNetV2 describe a GPU by."""
_HARDWARE = [DEVICE_FIELDS.index(name) for name in HARDWARE_FIELDS]
_OPTIMIZERS = tuple(Optimizer)
_CONVOLUTIONS = (OpClass.CONV, OpClass.GROUPED_CONV, OpClass.DEPTHWISE_CONV)
_POOLINGS = (OpClass.POOLING, OpClass.GLOBAL_POOLING)


@dataclass(frozen=True)
class LayerTable:
    """L layers of one kind.

    Attributes:
        kind: of all of them.
        sizes: ``[L, len(LAYER_FIELDS[kind])]``.
        hardware: ``[L, len(HARDWARE_FIELDS)]`` of the device that each runs on, SI units.
        optimizer: ``[L]`` position in :class:`Optimizer`; 0 ("none") stands for a forward pass, every other for
            forward, backward and update.
        position: ``[L]`` of a graph's layers, where they stand among its operators; of measured rows, their number.
    """

    kind: LayerKind
    sizes: np.ndarray
    hardware: np.ndarray
    optimizer: np.ndarray
    position: np.ndarray

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def of_rows(cls, rows: pd.DataFrame, kind: LayerKind) -> Self:
        """The layers of measured rows, all of one kind (:func:`rows_of_kind`), in their order."""
        from gnnperf.zoo.layers import parse

        models = rows["model"].astype("category").cat.remove_unused_categories().cat
        sizes = np.array([_described(parse(spec), kind) for spec in models.categories])
        sizes = sizes.reshape(-1, len(LAYER_FIELDS[kind]) - 1)
        devices = rows["device"].astype("category").cat.remove_unused_categories().cat
        hardware = np.array([_hardware(get_device(slug)) for slug in devices.categories])
        hardware = hardware.reshape(-1, len(HARDWARE_FIELDS))
        return cls(
            kind,
            np.column_stack([rows["batch"].to_numpy(float), sizes[models.codes.to_numpy()]]),
            hardware[devices.codes.to_numpy()],
            np.array([_OPTIMIZERS.index(name) for name in rows["optimizer"]], int),
            np.arange(len(rows)),
        )

    @classmethod
    def of_graph(cls, graph: GraphArrays, device: Device, optimizer: Optimizer) -> list[Self]:
        """A graph's layers, a table for each kind that it has.

        - Grouped and depthwise convolutions count as dense ones over the input channels of one group, which keeps
          their multiply-accumulates. Oblong kernels and images count as squares of the same area.
        - A dense layer's batch is the number of rows that its weights meet: images, or tokens.
        - A layer has an activation if one follows directly or behind a batch normalisation.
        - Global pooling is pooling with a kernel as large as the image.
        - Everything else (activations, normalisation, sums, concatenation, attention ...) is no layer.
        """
        activated = _activated(graph)
        tables = []
        for kind, classes in (
            (LayerKind.CONV, _CONVOLUTIONS),
            (LayerKind.DENSE, (OpClass.GEMM,)),
            (LayerKind.POOL, _POOLINGS),
        ):
            chosen = np.flatnonzero(np.isin(graph.op_class, classes))
            if len(chosen):
                columns = _columns(graph, chosen, kind) | {"activation": activated[chosen].astype(float)}
                sizes = np.column_stack([columns[name] for name in LAYER_FIELDS[kind]])
                hardware = np.tile(_hardware(device), (len(chosen), 1))
                number = np.full(len(chosen), _OPTIMIZERS.index(optimizer))
                tables.append(cls(kind, sizes, hardware, number, chosen))
        return tables

    def column(self, name: str) -> np.ndarray:
        """``[L]`` one of the sizes."""
        return self.sizes[:, LAYER_FIELDS[self.kind].index(name)]

    def output_side(self) -> np.ndarray:
        """``[L]`` side of the output image, 1 of dense layers."""
        if self.kind == LayerKind.DENSE:
            return np.ones(len(self))
        image, kernel, stride = self.column("image"), self.column("kernel"), self.column("stride")
        same = np.ceil(image / stride)
        valid = np.floor((image - kernel) / stride) + 1
        return np.where(self.column("same_padding") > 0, same, np.maximum(valid, 1))

    def input_elements(self) -> np.ndarray:
        """``[L]`` of the whole batch."""
        side = 1.0 if self.kind == LayerKind.DENSE else self.column("image")
        return self.column("batch") * self.column("channels") * side**2

    def output_elements(self) -> np.ndarray:
        """``[L]`` of the whole batch."""
        outputs = self.column("channels" if self.kind == LayerKind.POOL else "filters")
        return self.column("batch") * outputs * self.output_side() ** 2

    def operations(self) -> np.ndarray:
        """``[L]`` multiply-accumulates, or comparisons of a pooling."""
        area = 1.0 if self.kind == LayerKind.DENSE else self.column("kernel") ** 2
        depth = 1.0 if self.kind == LayerKind.POOL else self.column("channels")
        return self.output_elements() * area * depth


def rows_of_kind(rows: pd.DataFrame, kind: LayerKind) -> pd.DataFrame:
    """The measured layers of a kind."""
    models = rows["model"].astype("category").cat
    return rows[np.char.startswith(models.categories.to_numpy(str), f"{kind}/")[models.codes.to_numpy()]]


def _described(layer: Layer, kind: LayerKind) -> list[float]:
    """The fields of a kind but the batch."""
    values = []
    for name in LAYER_FIELDS[kind][1:]:
        if name == "same_padding":
            values.append(float(layer.padding == "same"))
        else:
            value = getattr(layer, name)
            values.append(float(bool(value)) if name in _FLAGS else float(value))
    return values


def _hardware(device: Device) -> np.ndarray:
    return device_features(device)[_HARDWARE]


def _columns(graph: GraphArrays, chosen: np.ndarray, kind: LayerKind) -> dict[str, np.ndarray]:
    """The fields of a kind, without the activation, of the operators chosen."""

    def column(name: str) -> np.ndarray:
        return graph.column(name)[chosen]

    if kind == LayerKind.DENSE:
        return {"batch": column("gemm_m"), "channels": column("gemm_k"), "filters": column("gemm_n")}
    area = np.maximum(column("kernel_h") * column("kernel_w"), 1)
    kernel, stride = np.sqrt(area), np.maximum(column("stride"), 1)
    channels = np.maximum(column("in_channels"), 1)
    image = np.sqrt(column("input_bytes") / column("element_bytes") / graph.batch / channels)
    # Framework "same" padding, or any explicit padding: the output is larger than without.
    valid = np.floor((image - kernel) / stride) + 1
    output = np.sqrt(column("output_h") * column("output_w"))
    columns = {
        "batch": np.full(len(chosen), float(graph.batch)),
        "image": image,
        "kernel": kernel,
        "channels": channels,
        "stride": stride,
        "same_padding": (output > valid).astype(float),
    }
    if kind == LayerKind.CONV:
        weights = column("gemm_k") * column("out_channels")
        columns |= {
            "channels": np.maximum(column("gemm_k") / area, 1),
            "filters": column("out_channels"),
            "bias": (column("weight_bytes") / column("element_bytes") > weights).astype(float),
        }
    return columns


def _activated(graph: GraphArrays) -> np.ndarray:
    """``[N]`` whether an operator's only consumer is an activation, or a batch normalisation with one behind it."""
    consumers = defaultdict(list)
    for source, target in graph.edge_index.T.tolist():
        consumers[source].append(target)

    def next_of(operator: int) -> int | None:
        return consumers[operator][0] if len(consumers[operator]) == 1 else None

    activated = np.zeros(graph.num_nodes, bool)
    for operator in range(graph.num_nodes):
        follower = next_of(operator)
        if follower is not None and graph.op_class[follower] == OpClass.BATCH_NORM:
            follower = next_of(follower)
        activated[operator] = follower is not None and graph.op_class[follower] == OpClass.ACTIVATION
    return activated
