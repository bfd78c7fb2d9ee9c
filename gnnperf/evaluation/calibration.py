"""Calibrate a predictor's intervals on a table of scored rows, as ``gnnperf evaluate families`` writes it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.graph_building import build_arrays
from gnnperf.datasets.splits import SEARCH_SPACES
from gnnperf.devices import get_device
from gnnperf.errors import DataError, GnnperfError
from gnnperf.evaluation.conformal import Scores, TooFewFolds, fit_intervals
from gnnperf.files import write_whole
from gnnperf.graph import GraphArrays
from gnnperf.intervals import PHASES, SCALE_TERMS, Intervals, input_terms
from gnnperf.predictor import DESCRIPTION_FILE, MEASURED_FILE, Predictor
from gnnperf.similarity import describe
from gnnperf.training.config import TrainingConfig
from gnnperf.training.measured import (
    describe_rows,
    distinct_cases,
    measured_networks,
    some_of_each_family,
    spread_networks,
)
from gnnperf.training.predictor_files import read_config, training_domain
from gnnperf.training.samples import conditions_of
from gnnperf.training.split import split_rows

COLUMNS = ("fold", "model", "family", "device", "stack", "precision", "phase", "window", "optimizer", "batch",
           "latency_ms", "stack_only_ms")  # fmt: skip
"""What a table of scored rows needs; ``stack_only_ms`` is what a user's file would have got."""
_CONDITIONS = [SCALE_TERMS.index(name) for name in ("device", "stack", "precision", "phase")]


@dataclass
class Calibration:
    """What calibration found.

    Attributes:
        intervals: fitted on all folds but the predictor's own held-out families.
        rows: the scored rows with ``low_ms`` and ``high_ms``: those of a fold by a calibration on the other folds,
            those of the predictor's held-out families by ``intervals``. Further columns: ``role`` (``left out`` or
            ``test``), ``conditions`` (``measured``, or ``unmeasured`` where device, stack, precision or phase were not
            in the fold's training set; such rows are not calibrated on) and ``distance``.
        coverage: see :func:`coverage_by_fold`.
    """

    intervals: Intervals
    rows: pd.DataFrame
    coverage: pd.DataFrame


def read_rows(paths: list[Path]) -> pd.DataFrame:
    """Tables of scored rows as one.

    Raises:
        DataError: a file cannot be read, lacks a column, or holds a latency that is not a positive number.
    """
    frames = []
    for path in paths:
        try:
            frame = pd.read_csv(path, keep_default_na=False, na_values=[""], dtype={"fold": str, "model": str})
        except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
            raise DataError(f"cannot read the scored rows {path}: {' '.join(str(error).split())}") from None
        missing = [name for name in COLUMNS if name not in frame.columns]
        if missing:
            raise DataError(f"{path} is no table of scored rows: it lacks {', '.join(missing)}")
        for name in ("latency_ms", "stack_only_ms", "batch"):
            values = pd.to_numeric(frame[name], errors="coerce")
            bad = ~(np.isfinite(values) & (values > 0))
            if bad.any():
                raise DataError(f"{path}, row {int(np.flatnonzero(bad)[0])}: {name} has to be a positive number")
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def calibrate_predictor(folder: Path, rows: pd.DataFrame, dataset: Dataset) -> Calibration:
    """Calibrate the predictor in ``folder`` and write the result into its description.

    Args:
        folder: as ``gnnperf train`` wrote it; gets ``measured.json`` where that is missing.
        rows: see :data:`COLUMNS`; predictions of one configuration with families left out in turn.
        dataset: what the predictor was trained on.

    Raises:
        GnnperfError: the folder holds no predictor, or cannot be written.
        DataError: there are too few folds (:class:`TooFewFolds`), or a row's network, device or condition is unknown.
    """
    predictor, config, path = Predictor.load(folder), read_config(folder), folder / DESCRIPTION_FILE
    found = calibrate_rows(rows, dataset, config)
    try:
        if predictor.measured is None:
            train = split_rows(dataset.frame, config.data, config.seed).train
            write_whole(folder / MEASURED_FILE, measured_networks(train, dataset.graphs).to_json().encode())
        description = json.loads(path.read_text(encoding="utf-8")) | {"intervals": found.intervals.to_dict()}
        write_whole(path, (json.dumps(description, indent=2, allow_nan=False) + "\n").encode())
    except OSError as error:
        raise GnnperfError(f"cannot write to {folder}: {error.strerror or error}") from None
    return found


def calibrate_rows(rows: pd.DataFrame, dataset: Dataset, config: TrainingConfig) -> Calibration:
    """The same without a predictor: the intervals of a table of scored rows, each fold's by the other folds.

    Args:
        rows: see :data:`COLUMNS`.
        dataset: what the folds were trained on, but for the families of each.
        config: by which they were trained; its held-out families are a test.

    Raises:
        DataError: there are too few folds (:class:`TooFewFolds`), or a row's network, device or condition is unknown.
    """
    rows = rows.reset_index(drop=True)
    terms = _terms(rows, dataset, split_rows(dataset.frame, config.data, config.seed).train)
    return calibrate(rows, terms, rows["family"].isin(config.data.held_out_families).to_numpy())


def with_intervals(rows: pd.DataFrame, dataset: Dataset, config: TrainingConfig) -> pd.DataFrame:
    """Scored rows with the ends of their intervals, those of each fold by the other folds; NaN for too few folds."""
    try:
        found = calibrate_rows(rows, dataset, config).rows
    except TooFewFolds:
        return rows.assign(low_ms=np.nan, high_ms=np.nan)
    return rows.assign(low_ms=found["low_ms"].to_numpy(), high_ms=found["high_ms"].to_numpy())


def calibrate(rows: pd.DataFrame, terms: np.ndarray, test: np.ndarray) -> Calibration:
    """Fit intervals, and see what they cover.

    Args:
        rows: see :data:`COLUMNS`; numbered from 0.
        terms: ``[rows, len(SCALE_TERMS)]`` of each.
        test: ``[rows]`` those that must not be calibrated on.

    Raises:
        TooFewFolds: fewer than three are left.
    """
    predicted, phase = rows["stack_only_ms"].to_numpy(float), np.where(rows["phase"] == "inference", *PHASES)
    scores = Scores(
        error=np.abs(np.log(rows["latency_ms"].to_numpy(float) / predicted)),
        terms=terms,
        fold=rows["fold"].astype(str).to_numpy(),
        phase=phase,
        is_space=rows["family"].isin(SEARCH_SPACES).to_numpy(),
    )
    measured = (terms[:, _CONDITIONS] == 0).all(axis=1)
    intervals, left_out = fit_intervals(scores.where(measured & ~test))

    low, high = intervals.bounds(predicted, terms, phase)
    for fold, of_others in left_out.items():
        here = (scores.fold == fold) & ~test
        low[here], high[here] = of_others.bounds(predicted[here], terms[here], phase[here])
    scored = rows.assign(
        low_ms=low,
        high_ms=high,
        role=np.where(test, "test", "left out"),
        conditions=np.where(measured, "measured", "unmeasured"),
        distance=terms[:, SCALE_TERMS.index("distance")],
    )
    coverage = coverage_by_fold(scored)
    intervals.report["coverage_by_fold"] = [
        {name: round(value, 4) if isinstance(value, float) else value for name, value in record.items()}
        for record in coverage.to_dict("records")
    ]
    return Calibration(intervals, scored, coverage)


def coverage_by_fold(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows, coverage, mean width over the prediction and mean distance, by role, conditions, phase and fold.

    Args:
        rows: see :attr:`Calibration.rows`.
    """
    keys = ["role", "conditions", "phase", "fold"]
    figures = {
        "rows": np.ones(len(rows), int),
        "coverage": rows["latency_ms"].between(rows["low_ms"], rows["high_ms"]).astype(float),
        "width": (rows["high_ms"] - rows["low_ms"]) / rows["stack_only_ms"],
        "phase": np.where(rows["phase"] == "inference", *PHASES),
    }
    frame = rows[[*keys, "distance"]].assign(**figures)
    return frame.groupby(keys, as_index=False).agg(
        {"rows": "sum", "coverage": "mean", "width": "mean", "distance": "mean"}
    )


def _terms(rows: pd.DataFrame, dataset: Dataset, train: pd.DataFrame) -> np.ndarray:
    """``[rows, len(SCALE_TERMS)]``, each row as the network of its fold saw it: its own families were not measured."""
    graphs, domain_rows, cases = _graphs(rows, dataset), some_of_each_family(train), distinct_cases(train)
    descriptors = describe_rows(cases, dataset.graphs)
    terms = np.empty((len(rows), len(SCALE_TERMS)))
    for _, part in rows.groupby("fold"):
        left_out = set(part["family"])
        kept = ~cases["family"].isin(left_out).to_numpy()
        if not kept.any():
            raise DataError(f"without {', '.join(sorted(left_out))} nothing is left to train on: import more sources")
        measured = spread_networks(cases[kept], descriptors[kept])
        domain = training_domain(domain_rows[~domain_rows["family"].isin(left_out)], dataset.graphs)
        at_batch, cases_here = [], []
        for row in part.itertuples():
            try:
                cases_here.append((get_device(row.device), conditions_of(row)))
            except ValueError as error:
                raise DataError(f"row {row.Index} of the scored rows: {error}") from None
            at_batch.append(graphs[row.model].at_batch(int(row.batch)))
        described = [describe(graph, *case) for graph, case in zip(at_batch, cases_here, strict=True)]
        _, distances = measured.distances(np.stack(described))
        terms[part.index] = input_terms(at_batch, cases_here, domain, distances)
    return terms


def _graphs(rows: pd.DataFrame, dataset: Dataset) -> dict[str, GraphArrays]:
    """Graphs at batch 1 by model: those of the dataset, and for what it lacks those of the zoo."""
    models = rows["model"].unique()
    known = dataset.frame[dataset.frame["model"].isin(models)].drop_duplicates("model")
    keys = dict(zip(known["model"].astype(str), known["graph_key"].astype(str), strict=True))
    return {model: dataset.graphs[keys[model]] if keys.get(model) else build_arrays(model) for model in models}
