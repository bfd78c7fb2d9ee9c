"""Is the time that a prediction gives to each operator sensible? Compared with layers that were timed by themselves.

The measurements are ResPerfNet's (s9013xx/model_inference_time_predictor): every layer of six networks, run alone
through a TensorFlow 1 session on a GTX 1080 Ti. They come without a licence, so they are read here, for evaluation
alone, and are no source of ``gnnperf data import``. A layer's time there includes starting the session and copying the
layer's output to the host; only what is left can be compared with an operator inside a network.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from gnnperf.conditions import Conditions, Stack
from gnnperf.datasets.readers.resperfnet import NETWORKS
from gnnperf.datasets.schema import Use
from gnnperf.devices import get_device
from gnnperf.errors import DataError
from gnnperf.graph import OpGraph, read_graph
from gnnperf.graph.opgraph import Node, OpClass
from gnnperf.prediction import LatencyPrediction
from gnnperf.predictor import Predictor

DEVICE = "1080ti"
USE = Use.EVALUATE
_TOP = 5
_KINDS = {"Conv2D": "conv", "Dense": "dense", "MaxPooling2D": "pool", "GlobalAveragePooling2D": "pool"}
_CLASSES = {
    OpClass.CONV: "conv",
    OpClass.GEMM: "dense",
    OpClass.POOLING: "pool",
    OpClass.GLOBAL_POOLING: "pool",
}
_PRODUCTS = ("conv", "gemm", "matmul", "attention")

Signature = tuple[str, int, int, int, int]
"""Kind, input channels, output channels, kernel and output height of a layer."""


@dataclass(frozen=True)
class TimedLayer:
    """One layer as it was measured.

    Attributes:
        name: Keras' name of the layer.
        signature: what it computes.
        latency_ms: median of its runs.
    """

    name: str
    signature: Signature
    latency_ms: float


@dataclass(frozen=True)
class ComparedLayer:
    """Layers of one network that compute the same, measured and predicted.

    Attributes:
        network: folder of the measurements.
        batch: batch size.
        name: name of the first of them.
        count: how many there are.
        measured_ms: mean of their measured times.
        predicted_ms: mean of their parts of the prediction.
        output_mb: what each of them writes.
    """

    network: str
    batch: int
    name: str
    count: int
    measured_ms: float
    predicted_ms: float
    output_mb: float


@dataclass(frozen=True)
class Copy:
    """A layer's time in a session: ``scale * device time + ms_per_mb * output + call_ms``."""

    scale: float
    ms_per_mb: float
    call_ms: float

    def added_ms(self, layers: Sequence[ComparedLayer]) -> np.ndarray:
        """``[layers]`` ms that the session adds to the work on the device."""
        return self.ms_per_mb * np.array([layer.output_mb for layer in layers]) + self.call_ms


def read_layers(folder: Path, network: str, batch: int) -> list[TimedLayer]:
    """Layers of a network at a batch size, in the order of the file.

    Args:
        folder: ResPerfNet's ``models_1080ti``.
        network: one of :data:`gnnperf.datasets.readers.resperfnet.NETWORKS`.
        batch: one of :data:`gnnperf.datasets.readers.resperfnet.BATCHES`.

    Raises:
        DataError: there is no such file, or it is in another form.
    """
    path = folder / network / f"{network}_{batch}.csv"
    if not path.is_file():
        raise DataError(f"no layer timings at {path}: give the folder models_1080ti of ResPerfNet's measurements")
    try:
        return [
            TimedLayer(str(row.name), _row_signature(row), float(row.time_median))
            for row in pd.read_csv(path).itertuples(index=False)
        ]
    except (AttributeError, KeyError, ValueError) as error:
        raise DataError(f"{path} is damaged or in another form: {error!r}") from None


def _row_signature(row) -> Signature:
    kind = _KINDS[row.operation.split(".")[-1].rstrip("'>")]
    channels = int(row.channels_in)
    if kind == "dense":
        return kind, channels, int(row.channels_out), 0, 1
    kernel, stride = int(row.kernelsize if kind == "conv" else row.poolsize), int(row.strides)
    outputs = int(row.channels_out) if kind == "conv" else channels
    size = -(-row.matsize // stride) if row.padding else (row.matsize - kernel) // stride + 1
    return kind, channels, outputs, kernel, int(size)


def _node_signature(node: Node) -> Signature | None:
    """The same of an operator; None of one that was not timed, or that the measurements cannot tell from others."""
    kind = _CLASSES.get(node.op_class)
    if kind is None:
        return None
    if kind == "dense":
        return kind, node.in_channels, node.out_channels, 0, 1
    if len(set(node.kernel)) != 1:  # they have one number for a kernel, and ran 7x1 convolutions as 7x7
        return None
    return kind, node.in_channels, node.out_channels, node.kernel[0], node.output_shape[-1]


def match_layers(graph: OpGraph, layers: Sequence[TimedLayer]) -> list[int | None]:
    """For each layer the position of its operator: the n-th layer of a signature is the n-th operator of it."""
    waiting = defaultdict(list)
    for position, node in enumerate(graph.nodes):
        waiting[_node_signature(node)].append(position)
    return [waiting[layer.signature].pop(0) if waiting[layer.signature] else None for layer in layers]


def layer_nodes(graph: OpGraph, position: int) -> list[int]:
    """The operator at a position and the activation behind it, which a Keras layer computes too.

    A batch normalisation between the two was not timed; it is passed over.
    """
    consumers = defaultdict(list)
    for edge in graph.edges:
        consumers[edge.source].append(edge.target)
    nodes, current = [position], position
    while len(consumers[current]) == 1:
        current = consumers[current][0]
        if graph.nodes[current].op_class == OpClass.ACTIVATION:
            return [*nodes, current]
        if graph.nodes[current].op_class != OpClass.BATCH_NORM:
            break
    return nodes


def compare_layers(
    predictor: Predictor, folder: Path, network: str, batch: int
) -> tuple[list[ComparedLayer], list[TimedLayer]]:
    """Every distinct layer of a network, measured and predicted for TensorFlow 1, and the layers without an operator.

    Layers that compute the same are one: how they rank among themselves is noise.

    Raises:
        DataError: see :func:`read_layers`.
    """
    layers = read_layers(folder, network, batch)
    graph = read_graph(_zoo_model(NETWORKS[network], batch))
    operator_ms = _operator_ms(predictor.predict_graph(graph, [(get_device(DEVICE), _conditions())])[0])
    groups, unmatched = defaultdict(list), []
    for layer, position in zip(layers, match_layers(graph, layers), strict=True):
        if position is None:
            unmatched.append(layer)
            continue
        predicted_ms = sum(operator_ms[graph.nodes[node].name] for node in layer_nodes(graph, position))
        groups[layer.signature].append((layer, predicted_ms, graph.nodes[position].output_bytes / 1e6))
    compared = [
        ComparedLayer(
            network, batch, same[0][0].name, len(same), float(np.mean([layer.latency_ms for layer, _, _ in same])),
            float(np.mean([predicted_ms for _, predicted_ms, _ in same])), same[0][2],
        )
        for same in groups.values()
    ]  # fmt: skip
    return compared, unmatched


def _zoo_model(spec: str, batch: int):
    from gnnperf import zoo

    return zoo.build(spec, batch=batch)


def _conditions() -> Conditions:
    return Conditions(stack=Stack.TENSORFLOW_1)


def _operator_ms(prediction: LatencyPrediction) -> dict[str, float]:
    return {operator.name: operator.latency_ms for operator in prediction.operators}


def fit_copy(layers: Sequence[ComparedLayer]) -> Copy:
    """What a session adds, by non-negative least squares of relative errors on all of ``layers``."""
    from scipy.optimize import nnls

    measured = np.array([layer.measured_ms for layer in layers])
    inputs = np.array([[layer.predicted_ms, layer.output_mb, 1.0] for layer in layers])
    return Copy(*nnls(inputs / measured[:, None], np.ones(len(measured)))[0].tolist())


def rank_agreement(first: Sequence[float], second: Sequence[float]) -> dict[str, float]:
    """Kendall's tau-b, Spearman's rho, and how many of the five largest are the same (``top``)."""
    from scipy.stats import kendalltau, spearmanr

    first, second = np.asarray(first, float), np.asarray(second, float)
    top = [set(np.argsort(-values, kind="stable")[:_TOP].tolist()) for values in (first, second)]
    return {
        "kendall_tau": float(kendalltau(first, second).statistic),
        "spearman_rho": float(spearmanr(first, second).statistic),
        "top": len(top[0] & top[1]),
    }


def summarise_layers(layers: Sequence[ComparedLayer], copy: Copy) -> dict:
    """Agreement of measured and predicted layers of one network at one batch size.

    Args:
        layers: of the network, at the batch size.
        copy: what the session adds, fitted on other networks.

    Returns:
        Counts, sums, and :func:`rank_agreement` of the measured times with the predicted ones (``as_measured``), with
        the predicted ones and the session's part (``with_copy``), with the output's size alone (``output_alone``), and
        of what is left of the measured times without the session's part with the predicted ones (``without_copy``).
        ``mape_with_copy`` is the mean absolute percentage error of the second, a fraction; ``copy_share`` the part of
        the measured sum that the session accounts for.
    """
    measured = np.array([layer.measured_ms for layer in layers])
    predicted = np.array([layer.predicted_ms for layer in layers])
    count = np.array([layer.count for layer in layers])
    added = copy.added_ms(layers)
    with_copy = copy.scale * predicted + added
    return {
        "network": layers[0].network,
        "batch": layers[0].batch,
        "layers": int(count.sum()),
        "distinct": len(layers),
        "measured_sum_ms": float(measured @ count),
        "predicted_sum_ms": float(predicted @ count),
        "copy_share": float(added @ count / (measured @ count)),
        "as_measured": rank_agreement(measured, predicted),
        "without_copy": rank_agreement(measured - added, predicted),
        "with_copy": rank_agreement(measured, with_copy),
        "output_alone": rank_agreement(measured, [layer.output_mb for layer in layers]),
        "mape_with_copy": float(np.abs(with_copy / measured - 1).mean()),
    }


def compare_networks(predictor: Predictor, folder: Path, networks: Iterable[str], batches: Iterable[int]) -> list[dict]:
    """:func:`summarise_layers` for each network and batch, the session's part fitted on the other networks' layers.

    Each record also has ``unmatched``, the number of layers without an operator, and ``ms_per_mb``, ``call_ms`` and
    ``scale`` of the session.

    Raises:
        DataError: a file is missing or damaged, or only one network is asked for.
    """
    networks, batches = list(networks), list(batches)
    if len(networks) < 2:
        raise DataError("what a session adds is fitted on other networks' layers: name two networks or more")
    found = {(name, batch): compare_layers(predictor, folder, name, batch) for name in networks for batch in batches}
    records = []
    for (network, _), (layers, unmatched) in found.items():
        copy = fit_copy([layer for (other, _), (some, _) in found.items() if other != network for layer in some])
        session = {"scale": copy.scale, "ms_per_mb": copy.ms_per_mb, "call_ms": copy.call_ms}
        records.append(summarise_layers(layers, copy) | {"unmatched": len(unmatched)} | session)
    return records


def class_shares(prediction: LatencyPrediction) -> dict[str, float]:
    """Fraction of the latency by operator class, largest first."""
    shares = defaultdict(float)
    for operator in prediction.operators:
        shares[operator.op_class] += operator.share
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def product_share(prediction: LatencyPrediction) -> float:
    """Fraction of the latency that convolutions, matrix products and attention take."""
    shares = class_shares(prediction)
    return sum(shares.get(name, 0.0) for name in _PRODUCTS)
