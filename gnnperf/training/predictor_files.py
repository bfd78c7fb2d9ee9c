"""The files that a predictor is made of: weights, exported network, and what they were trained on."""

from __future__ import annotations

import json
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.torch import save

from gnnperf.datasets.graph_store import GraphStore
from gnnperf.domain import Domain
from gnnperf.errors import GnnperfError
from gnnperf.files import write_whole
from gnnperf.graph import OpClass
from gnnperf.nn.network import LatencyNetwork
from gnnperf.predictor import DESCRIPTION_FILE, FORMAT, MEASURED_FILE, NETWORK_FILE
from gnnperf.training.config import TrainingConfig
from gnnperf.training.export import export_network
from gnnperf.training.measured import measured_networks
from gnnperf.training.samples import row_device_slugs
from gnnperf.training.split import Split

WEIGHTS_FILE = "weights.safetensors"
_VERSIONS = ("gnnperf", "torch", "torch-geometric", "lightning", "numpy", "onnx")


def write_predictor(
    folder: Path, network: LatencyNetwork, config: TrainingConfig, split: Split, graphs: GraphStore, seconds: float
) -> None:
    """Write ``weights.safetensors``, ``network.onnx``, ``measured.json`` and, when all are there, ``predictor.json``.

    Args:
        folder: where to; it exists.
        network: trained.
        config: what it was trained by.
        split: what it was trained on.
        graphs: of the rows in the split.
        seconds: that training took.

    Raises:
        OSError: the folder cannot be written.
    """
    state = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    write_whole(folder / WEIGHTS_FILE, save(state))
    export_network(network, folder / NETWORK_FILE)
    write_whole(folder / MEASURED_FILE, measured_networks(split.train, graphs).to_json().encode())
    description = {
        "format": FORMAT,
        "name": config.name,
        "date": date.today().isoformat(),
        "campaigns": list(network.config.campaigns),
        "devices": list(network.config.devices),
        "domain": training_domain(split.train, graphs).to_dict(),
        "config": config.model_dump(mode="json"),
        "network": network.config.to_dict(),
        "rows": {
            "train": len(split.train),
            "by_source": _counts(split.train["source"]),
            "by_family": _counts(split.train["family"]),
            "held_out": len(split.held_out),
            "in_space_held_out": len(split.in_space),
        },
        "training_seconds": round(seconds, 1),
        "versions": {name: version(name) for name in _VERSIONS},
    }
    write_whole(folder / DESCRIPTION_FILE, (json.dumps(description, indent=2) + "\n").encode())


def read_config(folder: Path) -> TrainingConfig:
    """The configuration that the predictor in a folder was trained by.

    Raises:
        GnnperfError: there is no predictor, or its configuration is of another version.
    """
    path = folder / DESCRIPTION_FILE
    try:
        return TrainingConfig.model_validate(json.loads(path.read_text(encoding="utf-8"))["config"])
    except OSError as error:
        raise GnnperfError(f"cannot read the predictor {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError):  # pydantic's errors are ValueErrors
        raise GnnperfError(
            f"{path} does not say how its predictor was trained, or in words of another version: train it again"
        ) from None


def _counts(column: pd.Series) -> dict[str, int]:
    return column.astype(str).value_counts().to_dict()


def training_domain(train: pd.DataFrame, graphs: GraphStore) -> Domain:
    """What the whole-model rows of a training set cover; the layers, where there is nothing else."""
    models = train[train["kind"] == "model"]
    models = models if len(models) else train
    structures = models.groupby("graph_key", observed=True)["batch"].agg(["min", "max"])
    classes: set[int] = set()
    macs, operators = [], []
    for key, (low, high) in structures.iterrows():
        graph = graphs[key]
        classes.update(np.unique(graph.op_class).tolist())
        total = float(graph.column("macs").sum())
        macs += [total * low, total * high]
        operators.append(graph.num_nodes)

    def names(column: str) -> tuple[str, ...]:
        return tuple(sorted(models[column].astype(str).unique()))

    return Domain(
        op_classes=tuple(sorted(OpClass(c).name.lower() for c in classes)),
        devices=tuple(sorted(set(row_device_slugs(models)))),
        stacks=names("stack"),
        precisions=names("precision"),
        phases=tuple(sorted({"inference" if p == "inference" else "training" for p in models["phase"].astype(str)})),
        batch=(int(models["batch"].min()), int(models["batch"].max())),
        macs=(min(macs), max(macs)),
        operators=(min(operators), max(operators)),
    )
