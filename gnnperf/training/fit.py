"""Fit a network from a configuration: data, splits, Lightning's loop, checkpoints, and the files of the predictor."""

from __future__ import annotations

import hashlib
import json
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

import lightning
import numpy as np
import pandas as pd
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint, TQDMProgressBar
from safetensors.torch import save_file
from torch.utils.data import DataLoader, Sampler

from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.splits import split_by_family, split_by_graph
from gnnperf.domain import Domain
from gnnperf.errors import TrainingError
from gnnperf.graph import GraphArrays, OpClass, read_graph, to_arrays
from gnnperf.nn.network import LatencyNetwork, NetworkConfig
from gnnperf.predictor import DESCRIPTION_FILE, NETWORK_FILE
from gnnperf.training.config import DataConfig, TrainingConfig
from gnnperf.training.export import export_network
from gnnperf.training.module import LatencyModule
from gnnperf.training.samples import SEARCH_SPACES, TrainingSteps

WEIGHTS_FILE = "weights.safetensors"
CHECKPOINT_FILE = "last.ckpt"
_CHECKPOINT_EVERY = 100

# Architectures without a latency of their own in the training set, on which the corrections are pulled to zero.
UNLABELLED = (
    "efficientnet_b0",
    "mobilenet_v3_large",
    "mobilenet_v3_small",
    "shufflenet_v2_x1_0",
    "mnasnet1_0",
    "resnext50_32x4d",
    "densenet121",
    "squeezenet1_1",
    "inception_v4",
    "wide_resnet50_2",
    "bert_base",
    "gpt2",
)


@dataclass
class Split:
    """Rows by what they are for.

    Attributes:
        train: rows that the network is fitted on.
        held_out: rows of the families held out.
        in_space: rows of search-space graphs held out.
    """

    train: pd.DataFrame
    held_out: pd.DataFrame
    in_space: pd.DataFrame


class Interrupted(Exception):
    """Ctrl-C: the checkpoint is written, the same command continues."""


def split_rows(frame: pd.DataFrame, config: DataConfig, seed: int) -> Split:
    """Rows that the configuration admits, split by family, and inside search spaces by graph.

    Raises:
        TrainingError: nothing is left to train on.
    """
    frame = frame[frame["use"] == "train"]
    for column, wanted in (("device", config.devices), ("source", config.sources), ("precision", config.precisions)):
        if wanted:
            frame = frame[frame[column].isin(list(wanted))]
    frame, held_out = split_by_family(frame, config.held_out_families)
    space = frame["family"].isin(SEARCH_SPACES)
    kept, in_space = split_by_graph(frame[space], 1 - config.search_space_share, seed)
    layers = frame[frame["kind"] == "layer"]
    if len(layers) > config.layer_rows:
        chosen = np.random.default_rng(seed).choice(len(layers), config.layer_rows, replace=False)
        layers = layers.iloc[np.sort(chosen)]
    train = pd.concat([frame[~space & (frame["kind"] == "model")], kept, layers], ignore_index=True)
    if train.empty:
        raise TrainingError("the configuration leaves no rows to train on: import more sources or admit more of them")
    return Split(train, held_out, in_space)


def _domain(train: pd.DataFrame, dataset: Dataset) -> Domain:
    models = train[train["kind"] == "model"]
    models = models if len(models) else train
    structures = models.groupby("graph_key", observed=True)["batch"].agg(["min", "max"])
    classes: set[int] = set()
    macs, operators = [], []
    for key, (low, high) in structures.iterrows():
        graph = dataset.graphs[key]
        classes.update(np.unique(graph.op_class).tolist())
        total = float(graph.column("macs").sum())
        macs += [total * low, total * high]
        operators.append(graph.num_nodes)

    def names(column: str) -> tuple[str, ...]:
        return tuple(sorted(models[column].astype(str).unique()))

    return Domain(
        op_classes=tuple(sorted(OpClass(c).name.lower() for c in classes)),
        devices=names("device"),
        stacks=names("stack"),
        precisions=names("precision"),
        phases=tuple(sorted({"inference" if p == "inference" else "training" for p in models["phase"].astype(str)})),
        batch=(int(models["batch"].min()), int(models["batch"].max())),
        macs=(min(macs), max(macs)),
        operators=(min(operators), max(operators)),
    )


def unlabelled_graphs() -> list[GraphArrays]:
    """Diverse zoo graphs at batch 1, none of a headline family."""
    from gnnperf import zoo

    return [to_arrays(read_graph(zoo.build(name), batch=1)) for name in UNLABELLED]


class _StepsFrom(Sampler[int]):
    """Step numbers from the first one that is still to be done."""

    def __init__(self, first: int, total: int) -> None:
        self._range = range(first, total)

    def __len__(self) -> int:
        return len(self._range)

    def __iter__(self) -> Iterator[int]:
        return iter(self._range)


class _StopOnInterrupt(Callback):
    """The first Ctrl-C ends the run after the current step; a second one ends it at once."""

    interrupted = False

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        def handle(signum: int, frame: object) -> None:
            self.interrupted = True
            trainer.should_stop = True
            signal.signal(signal.SIGINT, self._previous)

        self._previous = signal.signal(signal.SIGINT, handle)

    def on_train_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        signal.signal(signal.SIGINT, self._previous)


def fit(config: TrainingConfig, dataset: Dataset, folder: Path, *, progress: bool = True) -> Split:
    """Train, resuming from ``folder/last.ckpt`` where that belongs to the same configuration and data.

    Writes into ``folder``: ``weights.safetensors``, ``network.onnx``, ``predictor.json``.

    Returns:
        The split, for reports.

    Raises:
        TrainingError: no rows are left, or the checkpoint is of another configuration or damaged.
        Interrupted: Ctrl-C, after the checkpoint was written.
    """
    lightning.seed_everything(config.seed, verbose=False)
    split = split_rows(dataset.frame, config.data, config.seed)
    sources = tuple(sorted(split.train["source"].astype(str).unique()))
    network = LatencyNetwork(NetworkConfig(**config.network.model_dump(), sources=sources))
    module = LatencyModule(network, config.optimisation)

    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = folder / CHECKPOINT_FILE
    # A checkpoint continues only what it began: the same configuration on the same rows.
    identity = hashlib.sha256(
        config.model_dump_json().encode() + pd.util.hash_pandas_object(split.train["latency_ms"]).to_numpy().tobytes()
    ).hexdigest()
    first = _first_step(checkpoint, identity)
    module.identity = identity
    steps = TrainingSteps(
        split.train,
        dataset.graphs,
        sources,
        config.optimisation.batch,
        config.optimisation.loss_weight,
        unlabelled_graphs() if config.optimisation.batch.unlabelled else [],
        config.optimisation.steps,
        config.seed,
    )
    stop = _StopOnInterrupt()
    callbacks: list[Callback] = [
        ModelCheckpoint(
            folder, filename="last", every_n_train_steps=_CHECKPOINT_EVERY, save_top_k=1, enable_version_counter=False
        ),
        stop,
    ]
    if progress:
        callbacks.append(TQDMProgressBar(refresh_rate=10))
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_steps=config.optimisation.steps,
        max_epochs=1,
        gradient_clip_val=1.0,
        callbacks=callbacks,
        logger=False,
        enable_progress_bar=progress,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    start = time.perf_counter()
    if first < config.optimisation.steps:
        loader = DataLoader(steps, batch_size=None, sampler=_StepsFrom(first, config.optimisation.steps))
        trainer.fit(module, loader, ckpt_path=str(checkpoint) if first else None, weights_only=True)
        trainer.save_checkpoint(checkpoint)
        if stop.interrupted and trainer.global_step < config.optimisation.steps:
            raise Interrupted(f"stopped after step {trainer.global_step} of {config.optimisation.steps}")
    else:
        module.load_state_dict(torch.load(checkpoint, weights_only=True)["state_dict"])
    write_predictor(network, config, _domain(split.train, dataset), folder, split, time.perf_counter() - start)
    return split


def _first_step(checkpoint: Path, identity: str) -> int:
    if not checkpoint.exists():
        return 0
    try:
        state = torch.load(checkpoint, weights_only=True)
        found, step = state["identity"], int(state["global_step"])
    except Exception as error:
        raise TrainingError(
            f"the checkpoint {checkpoint} is damaged ({type(error).__name__}); delete it to start again"
        ) from None
    if found != identity:
        raise TrainingError(
            f"the checkpoint {checkpoint} belongs to another configuration or other data; "
            "delete it or choose another output folder"
        )
    return step


def write_predictor(
    network: LatencyNetwork, config: TrainingConfig, domain: Domain, folder: Path, split: Split, seconds: float
) -> None:
    """Weights, exported network and description; each file is complete or not there."""
    save_file({name: tensor.contiguous() for name, tensor in network.state_dict().items()}, folder / WEIGHTS_FILE)
    export_network(network, folder / NETWORK_FILE)
    description = {
        "format": 1,
        "name": config.name,
        "date": date.today().isoformat(),
        "sources": list(network.config.sources),
        "domain": domain.to_dict(),
        "config": config.model_dump(mode="json"),
        "network": network.config.to_dict(),
        "rows": {
            "train": len(split.train),
            "by_source": split.train["source"].astype(str).value_counts().to_dict(),
            "by_family": split.train["family"].astype(str).value_counts().to_dict(),
            "held_out": len(split.held_out),
            "in_space_held_out": len(split.in_space),
        },
        "training_seconds": round(seconds, 1),
        "versions": {
            name: version(name) for name in ("gnnperf", "torch", "torch-geometric", "lightning", "numpy", "onnx")
        },
    }
    partial = folder / (DESCRIPTION_FILE + ".part")
    partial.write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    partial.replace(folder / DESCRIPTION_FILE)
