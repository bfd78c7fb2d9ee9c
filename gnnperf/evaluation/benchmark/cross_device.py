"""Leave one device out, for methods that describe devices: on single layers, and on whole networks.

Justus et al. 2018 measured layers at random sizes on six GPUs. Each of them is left out in turn: per-layer methods are
fitted on the layers of the other five, ours is the network of ``gnnperf evaluate devices`` that saw no row of it.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from gnnperf.baselines import BASELINES
from gnnperf.baselines.layer_sum import LayerSumBaseline
from gnnperf.conditions import Phase
from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.graph_store import GraphStore
from gnnperf.datasets.readers.justus2018 import NAME as LAYER_SOURCE
from gnnperf.datasets.splits import HEADLINE_FAMILIES
from gnnperf.devices import get_device
from gnnperf.errors import DataError, GnnperfError
from gnnperf.evaluation.benchmark.fits import BenchmarkProgress, Fit, run_fits
from gnnperf.evaluation.benchmark.fitted import fit_identity
from gnnperf.evaluation.benchmark.networks import HEADLINE
from gnnperf.evaluation.benchmark.prediction_cache import PredictionCache
from gnnperf.evaluation.benchmark.result import OURS
from gnnperf.evaluation.benchmark.training_rows import Learns, TrainingRows
from gnnperf.evaluation.benchmark.truths import PHASES
from gnnperf.evaluation.metrics import summarise
from gnnperf.evaluation.protocols.folds import outside_search_spaces
from gnnperf.evaluation.scoring import predict
from gnnperf.predictor import DESCRIPTION_FILE, Predictor

METHODS = ("justus2018", "perfnetv2")
"""Baselines that take a device's figures as inputs."""
_LAYERS, _NETWORKS = 500, 200  # rows that are scored of a device and phase; more only narrow the figures


def cross_device(
    dataset: Dataset,
    device_folds: Path | None,
    cache: PredictionCache,
    *,
    jobs: int = 1,
    progress: BenchmarkProgress | None = None,
) -> tuple[list[dict], list[str]]:
    """Errors of each method on each device that it saw no row of.

    Args:
        dataset: imported measurements, of which justus2018's layers are fitted and scored.
        device_folds: folder of a finished ``gnnperf evaluate devices``; None: ours is left out.
        cache: for what is fitted.
        jobs: processes that fit.
        progress: told how far the run is.

    Returns:
        Records with ``device``, ``rows_of`` ("layers" or "networks"), ``phase``, ``rows``, and for each method its MAPE
        (a fraction; None where it says nothing); and sentences about what is missing.

    Raises:
        DataError: the cache cannot be written.
    """
    layers = dataset.frame[(dataset.frame["source"] == LAYER_SOURCE) & (dataset.frame["kind"] == "layer")]
    devices = sorted(layers["device"].astype(str).unique())
    scored = {device: _scored_rows(dataset.frame, device) for device in devices}
    columns = _fitted(layers, scored, dataset, cache, jobs, progress)
    records, notes = [], []
    for device in devices:
        try:
            predictor = _held_out_predictor(device_folds, device)
            columns[device, OURS] = predict(scored[device], dataset, predictor, with_campaign=False)
        except GnnperfError as error:
            columns[device, OURS] = np.full(len(scored[device]), np.nan)
            notes.append(f"{OURS}, cross-device, {device}: {error}")
        records += _records(device, scored[device], {name: columns[device, name] for name in (OURS, *METHODS)})
    return records, notes


def _scored_rows(frame: pd.DataFrame, device: str) -> pd.DataFrame:
    """Layers of the source, and whole networks of any, on the device; the headline families are not among them."""
    frame = frame[(frame["device"] == device) & (frame["precision"] == "fp32") & frame["phase"].isin(PHASES)]
    frame = frame[~frame["family"].isin(HEADLINE_FAMILIES)]
    parts = []
    for phase in PHASES:
        of_phase = frame[frame["phase"] == phase]
        layers = of_phase[(of_phase["kind"] == "layer") & (of_phase["source"] == LAYER_SOURCE)]
        networks = outside_search_spaces(of_phase[of_phase["kind"] == "model"])
        for rows, most in ((layers, _LAYERS), (networks, _NETWORKS)):
            parts.append(rows if len(rows) <= most else rows.sample(most, random_state=0))
    return pd.concat(parts).reset_index(drop=True)


def _fitted(
    layers: pd.DataFrame,
    scored: dict[str, pd.DataFrame],
    dataset: Dataset,
    cache: PredictionCache,
    jobs: int,
    progress: BenchmarkProgress | None,
) -> dict[tuple[str, str], np.ndarray]:
    """``[rows]`` ms by device left out and method."""
    columns, waiting = {}, []
    for device, rows in scored.items():
        training = TrainingRows(layers[layers["device"] != device], dataset.graphs, Learns.LAYERS)
        for name in METHODS:
            identity = fit_identity(name, training.digest(HEADLINE))
            known = cache.find(f"{name}-without-{device}", identity, rows)
            if known is not None:
                columns[device, name] = known
                continue
            fit = Fit(f"{name} without {device}", partial(_fit_and_predict, name, training, rows, dataset.graphs))
            waiting.append((device, name, identity, fit))
    for position, predicted in run_fits([fit for *_, fit in waiting], jobs, progress):
        device, name, identity, _ = waiting[position]
        if isinstance(predicted, GnnperfError):
            raise predicted
        columns[device, name] = predicted
        cache.keep(f"{name}-without-{device}", identity, scored[device], predicted)
    return columns


def _fit_and_predict(name: str, training: TrainingRows, scored: pd.DataFrame, graphs: GraphStore) -> np.ndarray:
    return _predictions(BASELINES[name]().fit(training.rows(HEADLINE), graphs), scored, graphs)


def _predictions(baseline: LayerSumBaseline, scored: pd.DataFrame, graphs: GraphStore) -> np.ndarray:
    """``[rows]`` ms: layers as they are described, with their optimizer; networks from their graphs."""
    predicted = np.full(len(scored), np.nan)
    is_layer = (scored["kind"] == "layer").to_numpy()
    predicted[is_layer] = baseline.layer_latencies(scored[is_layer])
    for place in np.flatnonzero(~is_layer):
        row = scored.iloc[place]
        graph = graphs[row["graph_key"]].at_batch(int(row["batch"]))
        try:
            predicted[place] = baseline.predict(
                graph, get_device(row["device"]), int(row["batch"]), Phase(row["phase"])
            )
        except GnnperfError:  # a network without any layer that it knows
            continue
    return predicted


def _held_out_predictor(device_folds: Path | None, device: str) -> Predictor:
    """Ours that saw no row of the device; of several, the one that was trained on most rows."""
    found = []
    for path in sorted(device_folds.glob(f"*/{DESCRIPTION_FILE}")) if device_folds is not None else ():
        description = _description(path)
        if device not in description["devices"] and device not in description["domain"]["devices"]:
            found.append((description["rows"]["train"], path.parent))
    if not found:
        raise DataError("give --device-folds, of a `gnnperf evaluate devices` that trained a network without it")
    return Predictor.load(max(found)[1])


def _description(path: Path) -> dict:
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        return {"devices": description["devices"], "domain": description["domain"], "rows": description["rows"]}
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path} describes no trained network ({type(error).__name__}: {error})") from None


def _records(device: str, scored: pd.DataFrame, columns: dict[str, np.ndarray]) -> list[dict]:
    records = []
    for (kind, phase), part in scored.groupby(["kind", "phase"], observed=True):
        record = {"device": device, "rows_of": f"{kind}s".replace("models", "networks"), "phase": str(phase),
                  "rows": len(part)}  # fmt: skip
        for name, predicted in columns.items():
            values, truth = predicted[part.index], part["latency_ms"].to_numpy()
            known = np.isfinite(values)
            record[name] = summarise(values[known], truth[known]).mape if known.any() else None
        records.append(record)
    return records
