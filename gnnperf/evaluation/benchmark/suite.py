"""The benchmark from what a user has: which methods can be run, on which rows, and what is missing."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from gnnperf.baselines import BASELINES
from gnnperf.baselines.baseline import Baseline
from gnnperf.baselines.layer_sum import LayerSumBaseline
from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.readers.resperfnet import is_test_layer, read_layers
from gnnperf.datasets.schema import concatenate
from gnnperf.errors import DataError, GnnperfError
from gnnperf.evaluation.benchmark.cross_device import cross_device
from gnnperf.evaluation.benchmark.fits import BenchmarkProgress
from gnnperf.evaluation.benchmark.fitted import FittedBaseline
from gnnperf.evaluation.benchmark.method import Method
from gnnperf.evaluation.benchmark.ours import Analytic, Gnnperf, GnnperfLayers, HeldOutPredictors
from gnnperf.evaluation.benchmark.prediction_cache import PredictionCache
from gnnperf.evaluation.benchmark.result import Benchmark
from gnnperf.evaluation.benchmark.run import run_benchmark
from gnnperf.evaluation.benchmark.training_rows import Learns, TrainingRows
from gnnperf.evaluation.benchmark.truths import DEVICE, Truth, truth_rows
from gnnperf.predictor import DESCRIPTION_FILE

_UNFITTED = ("roofline", "refined-roofline")
"""Baselines that learn nothing."""
_INSIDE_SPACES = ("operator-lookup",)
"""Baselines that are defined inside a search space alone, of which the benchmark has no row."""


@dataclass(frozen=True)
class Inputs:
    """What a user has.

    Attributes:
        data: folder of imported measurements; None: methods that are fitted are left out.
        resperfnet: folder of ResPerfNet's measurements; None: its layers and its truth are left out.
        folds: folder of a finished ``gnnperf evaluate families``; None: see :class:`HeldOutPredictors`.
        device_folds: folder of a finished ``gnnperf evaluate devices``; None: ours is left out across devices.
        predictor: folder of a predictor; None: the shipped one.
        cache: folder for what was fitted.
        jobs: processes that fit.
    """

    data: Path | None
    resperfnet: Path | None
    folds: Path | None
    device_folds: Path | None
    predictor: Path | None
    cache: Path
    jobs: int = 1


def benchmark_suite(inputs: Inputs, only: tuple[str, ...] = (), progress: BenchmarkProgress | None = None) -> Benchmark:
    """Run every method that the inputs allow.

    Args:
        inputs: what there is.
        only: names of methods; empty: all.
        progress: told how far the run is.

    Raises:
        GnnperfError: a name is none of a method, or a folder is missing, damaged or of the wrong kind.
    """
    for option, folder in (("--folds", inputs.folds), ("--device-folds", inputs.device_folds)):
        if folder is not None and not any(folder.glob(f"*/{DESCRIPTION_FILE}")):
            raise DataError(f"{folder} holds no network that `gnnperf evaluate` trained for a fold ({option})")
    predictors = HeldOutPredictors(inputs.predictor, inputs.folds)
    ours = [
        Gnnperf(predictors, told_stack=True),
        Gnnperf(predictors, told_stack=False),
        GnnperfLayers(predictors),
        Analytic(),
    ]
    baselines = {name: make for name, make in BASELINES.items() if name not in _INSIDE_SPACES}
    known = [*(method.name for method in ours), *baselines]
    unknown = [name for name in only if name not in known]
    if unknown:
        raise GnnperfError(f"no method is named {', '.join(unknown)}; there is {', '.join(known)}")

    dataset, layers = _training_data(inputs)
    methods: list[Method] = [method for method in ours if not only or method.name in only]
    notes = []
    for name, make in baselines.items():
        if only and name not in only:
            continue
        method = _baseline_method(make, dataset, layers)
        if method is None:
            notes.append(f"{name}: it is fitted on measurements; give --data")
        else:
            methods.append(method)
    if inputs.resperfnet is None:
        notes.append("the layer-sum truth, and whatever is fitted on ResPerfNet's layers: give --resperfnet")
    if inputs.folds is None:
        notes.append(
            "gnnperf-untold and gnnperf-layers on families other than the headline's: give --folds, of a finished "
            "`gnnperf evaluate families`"
        )
    cache = PredictionCache(inputs.cache)
    result = run_benchmark(methods, truth_rows(inputs.resperfnet), cache, jobs=inputs.jobs, progress=progress)
    if dataset is not None and not only:
        result.cross_device, missing = cross_device(
            dataset, inputs.device_folds, cache, jobs=inputs.jobs, progress=progress
        )
        notes += missing
    result.notes = notes
    return result


def _training_data(inputs: Inputs) -> tuple[Dataset | None, pd.DataFrame | None]:
    """Imported measurements, and all layers to learn from: theirs, and ResPerfNet's training set."""
    dataset = Dataset.open(inputs.data) if inputs.data is not None else None
    frames = []
    if dataset is not None:
        frames.append(dataset.frame[(dataset.frame["kind"] == "layer") & (dataset.frame["use"] == "train")])
    if inputs.resperfnet is not None:
        layers = read_layers(inputs.resperfnet, [DEVICE])
        frames.append(layers[~is_test_layer(layers)])
    return dataset, concatenate(frames) if frames else None


def _baseline_method(
    make: Callable[[], Baseline], dataset: Dataset | None, layers: pd.DataFrame | None
) -> FittedBaseline | None:
    """A baseline with the rows that it may learn from; None where there are none."""
    baseline = make()
    what = inspect.getdoc(type(baseline)).splitlines()[0].rstrip(".")
    if baseline.name in _UNFITTED:
        return FittedBaseline(baseline.name, what, baseline.paper, Truth.END_TO_END, make, None)
    if isinstance(baseline, LayerSumBaseline):
        rows = layers[layers["source"] == baseline.source] if layers is not None else ()
        if not len(rows):
            return None
        training = TrainingRows(rows, dataset.graphs if dataset else None, Learns.LAYERS)
        return FittedBaseline(baseline.name, what, baseline.paper, Truth.LAYER_SUM, make, training)
    if dataset is None:
        return None
    networks = dataset.frame[dataset.frame["use"] == "train"]
    training = TrainingRows(networks, dataset.graphs, Learns.NETWORKS)
    return FittedBaseline(baseline.name, what, baseline.paper, Truth.END_TO_END, make, training)
