"""Forward pass, backward pass and update, each against rows that tell them apart.

Torch7 timed both passes of whole networks (cnn_benchmarks). TensorFlow 1 timed single layers, and VGG16 on a V100,
without a backward pass and with a whole step that ends in one of six updates (justus2018).
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

from gnnperf.conditions import Optimizer
from gnnperf.datasets.dataset import Dataset
from gnnperf.devices import get_device
from gnnperf.errors import DataError
from gnnperf.evaluation.metrics import summarise
from gnnperf.evaluation.references import row_graphs
from gnnperf.evaluation.scoring import predict
from gnnperf.predictor import DESCRIPTION_FILE, Predictor
from gnnperf.training.config import TrainingConfig
from gnnperf.training.predictor_files import read_config
from gnnperf.training.split import split_rows

PASSES_SOURCE = "cnn_benchmarks"
UPDATES_SOURCE = "justus2018"
UPDATES = tuple(optimizer for optimizer in Optimizer if optimizer != Optimizer.NONE)
_DRAWN = 500  # layers of a kind under one optimizer; more only narrow the figures
_TEXT = ("model", "family", "device", "phase", "optimizer", "kind")


def held_out_mask(frame: pd.DataFrame, config: TrainingConfig) -> np.ndarray:
    """``[rows]`` whether a predictor of this configuration was not trained on a row.

    Args:
        frame: all rows that it was trained from, in the order that it saw them.
        config: of its training.
    """
    train = split_rows(frame.assign(position=np.arange(len(frame))), config.data, config.seed).train
    mask = np.ones(len(frame), bool)
    mask[train["position"].to_numpy()] = False
    return mask


def score_passes(dataset: Dataset, folder: Path, folds: Path | None = None) -> pd.DataFrame:
    """Whole networks' forward and backward passes and steps, measured and predicted for their stack alone.

    Args:
        dataset: with the source cnn_benchmarks.
        folder: of the predictor.
        folds: of ``gnnperf evaluate families``: each network is then predicted by the fold without its family.

    Returns:
        Columns model, family, device, phase, optimizer, batch, latency_ms, predicted_ms and ``sample``: ``in sample``
        where the network was trained on the row, ``left out`` where it saw nothing of the family.

    Raises:
        DataError: the dataset lacks the source, or the folds fit no network of it.
        GnnperfError: a folder holds no valid predictor.
    """
    frame = _source(dataset, PASSES_SOURCE)
    held_out = read_config(folder).data.held_out_families
    if folds is None:
        return _score(frame, dataset, folder, held_out)
    tables = [_score(frame[frame["family"].isin(held_out)], dataset, folder, held_out)]
    for fold in sorted(path.parent for path in folds.glob(f"*/{DESCRIPTION_FILE}")):
        left_out = set(read_config(fold).data.held_out_families) - set(held_out)
        tables.append(_score(frame[frame["family"].isin(left_out)], dataset, fold, left_out))
    if not sum(map(len, tables[1:])):
        raise DataError(f"{folds} holds no network that was trained without a family of {PASSES_SOURCE}")
    return pd.concat(tables, ignore_index=True)


def score_layers(dataset: Dataset, folder: Path, device: str, seed: int = 0) -> pd.DataFrame:
    """Single layers on a device that the predictor was not trained on, measured and predicted; some of each kind.

    Returns:
        Columns as :func:`score_passes` gives them, ``layer`` (``convolution`` or ``dense``), ``weight_bytes``,
        ``activation_bytes`` (read and written) and ``macs``.

    Raises:
        DataError: the dataset lacks the source, or it has no layers on the device that were not trained on.
        GnnperfError: the folder holds no valid predictor.
    """
    _source(dataset, UPDATES_SOURCE)
    frame = dataset.frame[held_out_mask(dataset.frame, read_config(folder))]
    frame = frame[(frame["source"] == UPDATES_SOURCE) & (frame["kind"] == "layer") & (frame["device"] == device)]
    if frame.empty:
        raise DataError(f"no layers on {device} that the predictor in {folder} was not trained on")
    layer = frame["model"].astype(str).str.startswith("conv/").map({True: "convolution", False: "dense"})
    frame = frame.assign(layer=layer).sample(frac=1, random_state=seed)
    frame = frame.groupby(["layer", "optimizer"], observed=True).head(_DRAWN).reset_index(drop=True)
    predicted_ms = predict(frame, dataset, Predictor.load(folder), with_campaign=False)
    graphs = row_graphs(frame, dataset)
    totals = {
        "weight_bytes": [graph.column("weight_bytes").sum() for graph in graphs],
        "activation_bytes": [(graph.column("input_bytes") + graph.column("output_bytes")).sum() for graph in graphs],
        "macs": [graph.column("macs").sum() for graph in graphs],
    }
    return _text(frame.assign(predicted_ms=predicted_ms, sample="row left out", **totals))


def score_steps(dataset: Dataset, folder: Path) -> pd.DataFrame:
    """Whole networks of justus2018 (VGG16 on a V100) without and with updates; columns as in :func:`score_passes`."""
    frame = _source(dataset, UPDATES_SOURCE)
    frame = frame[frame["kind"] == "model"]
    return _score(frame, dataset, folder, read_config(folder).data.held_out_families)


def _score(frame: pd.DataFrame, dataset: Dataset, folder: Path, held_out: Collection[str]) -> pd.DataFrame:
    """Rows predicted by the network in a folder, which was trained without the families held out."""
    predicted_ms = predict(frame, dataset, Predictor.load(folder), with_campaign=False)
    sample = np.where(frame["family"].isin(held_out), "left out", "in sample")
    return _text(frame.assign(predicted_ms=predicted_ms, sample=sample))


def _source(dataset: Dataset, name: str) -> pd.DataFrame:
    frame = dataset.frame[dataset.frame["source"] == name].reset_index(drop=True)
    if frame.empty:
        raise DataError(f"the dataset has no rows of {name}; `gnnperf data import {name} PATH` adds them")
    return frame


def _text(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.astype({name: str for name in _TEXT if name in rows}).reset_index(drop=True)


def accuracy(rows: pd.DataFrame, keys: list[str]) -> list[dict]:
    """``rows``, ``mape``, ``median_ape`` and ``bias`` (fractions) for each combination of values of ``keys``."""
    records = []
    for values, part in rows.groupby(keys):
        metrics = summarise(part["predicted_ms"], part["latency_ms"])
        figures = {name: getattr(metrics, name) for name in ("rows", "mape", "median_ape", "bias")}
        records.append(dict(zip(keys, values, strict=True)) | figures)
    return records


def backward_ratios(rows: pd.DataFrame) -> pd.DataFrame:
    """Backward over forward pass of each run that has both, ``measured`` and ``predicted``, by model and device."""
    rows = rows[rows["phase"].isin(["forward", "backward"])]
    by_phase = rows.pivot_table(
        index=["family", "model", "device", "batch"], columns="phase", values=["latency_ms", "predicted_ms"]
    ).dropna()
    ratios = {
        name: by_phase[column, "backward"] / by_phase[column, "forward"]
        for name, column in (("measured", "latency_ms"), ("predicted", "predicted_ms"))
    }
    return pd.DataFrame(ratios).reset_index()


def update_passes(layers: pd.DataFrame, column: str) -> dict[str, float]:
    """How often each kind of step moves its weights through the device's memory: from dense layers, by regression.

    Non-negative least squares of relative errors: ``column`` = bytes of weights, a coefficient for each optimizer;
    multiply-accumulates and bytes of activations, a coefficient for forward passes and one for steps; a constant for
    each optimizer. No two layers of the source are alike but for their optimizer, so that only a regression can tell
    updates apart; the same one on measured and on predicted milliseconds makes the two comparable.

    Args:
        layers: what :func:`score_layers` gave, of one device.
        column: ``latency_ms`` or ``predicted_ms``.

    Returns:
        By optimizer (``none``: a forward pass), the time for each byte of weights over the time to read it once.
    """
    from scipy.optimize import nnls

    dense = layers[layers["layer"] == "dense"]
    names = [str(name) for name in Optimizer if (dense["optimizer"] == name).any()]
    of = (dense["optimizer"].to_numpy()[:, None] == np.array(names)).astype(float)
    step = (dense["optimizer"] != Optimizer.NONE).to_numpy()[:, None]
    work = dense[["macs", "activation_bytes"]].to_numpy(float)
    work = work / work.mean(axis=0)
    milliseconds = dense[column].to_numpy(float)
    inputs = np.hstack([of * dense["weight_bytes"].to_numpy(float)[:, None] / 1e9, of, work * step, work * ~step])
    found = nnls(inputs / milliseconds[:, None], np.ones(len(dense)))[0]
    bandwidth_gb_s = get_device(dense["device"].iloc[0]).bandwidth_gb_s
    return {name: float(value * bandwidth_gb_s / 1e3) for name, value in zip(names, found, strict=False)}


def update_order(layers: pd.DataFrame) -> dict:
    """:func:`update_passes` measured and predicted, each beyond SGD's, and the rank correlation of the six updates."""
    from scipy.stats import kendalltau

    measured, predicted = (update_passes(layers, column) for column in ("latency_ms", "predicted_ms"))
    names = [str(name) for name in UPDATES if str(name) in measured]
    pairs = [(measured[name], predicted[name]) for name in names]
    return {
        "measured": measured,
        "predicted": predicted,
        "beyond_sgd": {
            name: {"measured": measured[name] - measured["sgd"], "predicted": predicted[name] - predicted["sgd"]}
            for name in names
        },
        "kendall_tau": float(kendalltau(*zip(*pairs, strict=True)).statistic),
    }


def step_costs(rows: pd.DataFrame) -> pd.DataFrame:
    """What a step costs beyond a forward pass, and beyond the step with SGD, at each batch; measured and predicted.

    Args:
        rows: what :func:`score_steps` gave.

    Returns:
        Columns model, device, batch, optimizer, and ``measured_*``, ``predicted_*`` of ``step_ms``,
        ``over_forward`` (a ratio) and ``over_sgd_ms`` (a difference).
    """
    records = []
    for keys, part in rows.groupby(["model", "device", "batch"]):
        by_optimizer = part.set_index("optimizer")[["latency_ms", "predicted_ms"]]
        if not {"none", "sgd"} <= set(by_optimizer.index):
            continue
        for optimizer in by_optimizer.index.drop("none"):
            record = dict(zip(("model", "device", "batch"), keys, strict=True)) | {"optimizer": optimizer}
            for kind, column in (("measured", "latency_ms"), ("predicted", "predicted_ms")):
                milliseconds = by_optimizer[column]
                record |= {
                    f"{kind}_step_ms": milliseconds[optimizer],
                    f"{kind}_over_forward": milliseconds[optimizer] / milliseconds["none"],
                    f"{kind}_over_sgd_ms": milliseconds[optimizer] - milliseconds["sgd"],
                }
            records.append(record)
    return pd.DataFrame(records)
