"""Rows of every device, predicted by the folds that ``gnnperf evaluate families`` trained for one."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from gnnperf.datasets.dataset import Dataset
from gnnperf.devices import DeviceKind, get_device
from gnnperf.errors import DataError
from gnnperf.evaluation.calibration import COLUMNS
from gnnperf.evaluation.scoring import predict
from gnnperf.predictor import DESCRIPTION_FILE, Predictor
from gnnperf.training.predictor_files import read_config
from gnnperf.training.split import split_rows

_NETWORKS = 40  # of a family from one source, on one device, at one batch size; search spaces have thousands


def score_folds(folds: Path, predictor: Path, dataset: Dataset) -> pd.DataFrame:
    """Rows to calibrate a predictor on, with the columns :data:`gnnperf.evaluation.calibration.COLUMNS` and two more.

    Each whole-model row that the predictor was trained on is predicted by the fold that left its family out, for the
    stack alone; rows of the families that the predictor itself holds out, on GPUs, are predicted by the predictor.

    Args:
        folds: folder with a folder a fold, each as ``gnnperf train`` writes it.
        predictor: folder of the predictor.
        dataset: what all of them were trained on.

    Raises:
        GnnperfError: a folder holds no valid predictor.
        DataError: there is no fold, or none that leaves out a family that the predictor was trained on.
    """
    config = read_config(predictor)
    split = split_rows(dataset.frame, config.data, config.seed)
    tables = []
    for folder in sorted(path.parent for path in folds.glob(f"*/{DESCRIPTION_FILE}")):
        left_out = set(read_config(folder).data.held_out_families) - set(config.data.held_out_families)
        tables.append(_score(folder.name, _some(split.train, left_out), dataset, folder))
    tables = [table for table in tables if len(table)]
    if not tables:
        raise DataError(
            f"{folds} holds no network that was trained without a family which the predictor was trained on; "
            "`gnnperf evaluate families` trains them"
        )
    test = _some(split.held_out, set(config.data.held_out_families))
    test = test[test["device"].map(lambda slug: get_device(slug).kind == DeviceKind.GPU).astype(bool)]
    for family in sorted(test["family"].astype(str).unique()):
        tables.append(_score(family, test[test["family"] == family], dataset, predictor))
    return pd.concat(tables, ignore_index=True)


def _some(frame: pd.DataFrame, families: set[str]) -> pd.DataFrame:
    """Whole-model rows of some families, at most so many under the same conditions; always the same ones."""
    frame = frame[(frame["kind"] == "model") & frame["family"].isin(families)]
    keys = ["family", "source", "device", "stack", "precision", "phase", "window", "optimizer", "batch"]
    shuffled = frame.sample(frac=1, random_state=0)
    return shuffled.groupby(keys, observed=True).head(_NETWORKS).sort_index()


def _score(fold: str, frame: pd.DataFrame, dataset: Dataset, folder: Path) -> pd.DataFrame:
    columns = ["source", *COLUMNS[1:-1], "citation"]
    predicted_ms = predict(frame, dataset, Predictor.load(folder), with_campaign=False)
    rows = frame[columns].assign(fold=fold, stack_only_ms=predicted_ms)
    return rows.astype({name: str for name in columns if rows[name].dtype == "category"}).reset_index(drop=True)
