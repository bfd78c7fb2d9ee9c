"""The two things that are called the latency of a network, and the rows of each on the GTX 1080 Ti."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import numpy as np
import pandas as pd

from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.graph_building import build_many
from gnnperf.datasets.graph_store import GraphStore
from gnnperf.datasets.importing import published_dataset
from gnnperf.datasets.readers.resperfnet import read_model_layers, read_model_sums
from gnnperf.evaluation.benchmark.networks import benchmark_network, fold_of
from gnnperf.evaluation.protocols.folds import outside_search_spaces, whole_models
from gnnperf.graph import GraphArrays

DEVICE = "1080ti"
PHASES = ("inference", "training")
_PRECISION = "fp32"
_COLUMNS = ("model", "family", "device", "stack", "framework_version", "precision", "phase", "window", "optimizer",
            "batch", "latency_ms", "use", "source", "citation", "graph_key")  # fmt: skip


class Truth(StrEnum):
    """What a method is compared with."""

    END_TO_END = "end-to-end"
    LAYER_SUM = "layer-sum"


MEANING = {
    Truth.END_TO_END: "the whole network in one run, as its framework runs it (data/published.csv). What gnnperf is "
    "trained for, and what a user waits for; per-layer methods add up layers, each with its own start",
    Truth.LAYER_SUM: "sum over convolutions, dense layers and poolings of what each takes in a TensorFlow 1 session of "
    "its own, its output copied to the host (ResPerfNet's measurements). What per-layer methods are trained for, and "
    "the wrong truth for whole-network methods: VGG16 at batch 16 sums to 123 ms and runs in 39 to 54",
}
"""What each truth is, for the tables."""


def truth_rows(resperfnet: Path | None) -> Dataset:
    """Rows of both truths and their graphs.

    End to end, inference and training steps of networks outside the search spaces; forward and backward parts of
    training steps, which some sources also give, are left out.

    Args:
        resperfnet: folder of ResPerfNet's measurements; None: end-to-end rows alone.

    Returns:
        Rows with the schema's columns but kind, spread and repeats, and these: ``truth``; ``network``, under which a
        row counts; ``fold``, by whose fits it is predicted; ``layers_key``, of the graph for per-layer methods. That is
        the network's own where the truth is end to end, else the timed layers side by side, without edges between.

    Raises:
        DataError: a file is missing or damaged.
    """
    dataset = published_dataset()
    frame = whole_models(outside_search_spaces(dataset.frame), DEVICE)
    frame = frame[(frame["precision"] == _PRECISION) & frame["phase"].isin(PHASES)][list(_COLUMNS)]
    frames = [frame.assign(truth=str(Truth.END_TO_END), layers_key=frame["graph_key"])]
    if resperfnet is not None:
        sums = _with_keys(read_model_sums(resperfnet), read_model_layers(resperfnet), dataset.graphs)
        frames.append(sums.assign(truth=str(Truth.LAYER_SUM)))
    rows = pd.concat([_plain(frame) for frame in frames], ignore_index=True)
    rows["network"] = [benchmark_network(*names) for names in zip(rows["model"], rows["family"], strict=True)]
    rows["fold"] = rows["family"].map(fold_of)
    return Dataset(None, rows, dataset.graphs)


def _with_keys(sums: pd.DataFrame, layers: pd.DataFrame, graphs: GraphStore) -> pd.DataFrame:
    """The rows with the keys of their graphs, which are added to ``graphs``."""
    # The same layers were timed at every batch size; a graph store holds them at batch 1.
    once = layers[layers["batch"] == layers["batch"].min()]
    built = dict(build_many([*sums["model"].cat.categories, *once["model"].astype(str).unique()], processes=1))
    networks = {spec: graphs.add(built[spec]) for spec in sums["model"].cat.categories}
    timed = {
        network: graphs.add(side_by_side([built[spec] for spec in part["model"].astype(str)]))
        for network, part in once.groupby("network")
    }
    model = sums["model"].astype(str)
    return sums[list(_COLUMNS)].assign(graph_key=model.map(networks), layers_key=model.map(timed))


def side_by_side(graphs: list[GraphArrays]) -> GraphArrays:
    """One graph that consists of several, without edges between them; all at one batch size."""
    first = np.cumsum([0, *(graph.num_nodes for graph in graphs[:-1])])
    return GraphArrays(
        np.concatenate([graph.op_class for graph in graphs]),
        np.concatenate([graph.node for graph in graphs]),
        np.concatenate([graph.edge_index + start for graph, start in zip(graphs, first, strict=True)], axis=1).astype(
            np.int32
        ),
        np.concatenate([graph.edge_bytes for graph in graphs]),
        sum(graph.input_bytes for graph in graphs),
        sum(graph.output_bytes for graph in graphs),
        graphs[0].batch,
    )


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Text instead of categories, which differ from table to table."""
    text = [name for name in frame.columns if isinstance(frame[name].dtype, pd.CategoricalDtype)]
    return frame.astype(dict.fromkeys(text, str))
