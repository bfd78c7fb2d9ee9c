"""What one does without a model of devices: take a measurement on another device, and scale it by data sheets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gnnperf.baselines.roofline_regression import RooflineRegression
from gnnperf.conditions import Precision
from gnnperf.datasets.dataset import Dataset
from gnnperf.devices import Device, get_device
from gnnperf.devices.features import DEVICE_FIELDS, device_features
from gnnperf.evaluation.protocols.folds import Fold
from gnnperf.evaluation.references import LEAST_ROWS, places_by, roofline_latencies, row_graphs, rows_with
from gnnperf.training.samples import row_group

_SAME = ["model", "stack", "precision", "phase", "window", "optimizer", "batch"]
_SPEEDS = [DEVICE_FIELDS.index(name) for name in ("peak_flops", "bandwidth_bytes_s", "sm_count")]
_MOST_ROWS = 400  # three constants need no more


def with_scaling(scored: pd.DataFrame, folds: Sequence[Fold], dataset: Dataset) -> pd.DataFrame:
    """Scored rows of these folds with two more columns, in ms; NaN where there is nothing to scale.

    ``scaled_ms``: the time of the same network under the same conditions (of the same source, where it has one) on the
    nearest device that the fold was trained on, times the ratio of the network's rooflines on the two devices: every
    operator scales by the ratio of the peaks or of the bandwidths, whichever bounds it.

    ``carried_ms``: :class:`gnnperf.baselines.roofline_regression.RooflineRegression`, whose shares of peak and
    bandwidth and launch cost are fitted on whole networks of the nearest device with five of that phase and precision.

    Nearest is of the same architecture, if there is one, and then of the smallest largest log ratio of peak, bandwidth
    and multiprocessors.
    """
    columns = [(_scaled(fold.train, fold.test, dataset), _carried(fold.train, fold.test, dataset)) for fold in folds]
    scaled_ms, carried_ms = map(np.concatenate, zip(*columns, strict=True))
    return scored.assign(scaled_ms=scaled_ms, carried_ms=carried_ms)


def _scaled(train: pd.DataFrame, test: pd.DataFrame, dataset: Dataset) -> np.ndarray:
    known = train[(train["kind"] == "model") & train["model"].isin(test["model"].unique())]
    known = known.assign(row=np.arange(len(known)))
    wanted = test.assign(place=np.arange(len(test)))
    keys = [*_SAME, "source", "device"]
    pairs = wanted[[*keys, "place"]].astype({name: str for name in keys if name != "batch"}).merge(
        known[[*keys, "row"]].astype({name: str for name in keys if name != "batch"}), on=_SAME, suffixes=("", "_kin")
    )  # fmt: skip
    predicted = np.full(len(test), np.nan)
    if pairs.empty:
        return predicted
    pairs["other_source"] = pairs["source"] != pairs["source_kin"]
    distance = {
        (a, b, p): _distance(get_device(a), get_device(b), Precision(p))
        for a, b, p in pairs[["device", "device_kin", "precision"]].drop_duplicates().itertuples(index=False)
    }
    pairs["distance"] = list(map(distance.get, zip(pairs["device"], pairs["device_kin"], pairs["precision"])))  # noqa: B905
    order = ["place", "other_source", "distance", "row"]
    pairs = pairs.sort_values(order).drop_duplicates("place")
    kin, rows = known.iloc[pairs["row"]], test.iloc[pairs["place"]]
    ratio = roofline_latencies(rows, dataset) / roofline_latencies(kin, dataset)
    predicted[pairs["place"]] = kin["latency_ms"].to_numpy() * ratio
    return predicted


def _carried(train: pd.DataFrame, test: pd.DataFrame, dataset: Dataset) -> np.ndarray:
    predicted = np.full(len(test), np.nan)
    models = train[row_group(train) == "model"]
    for values, places in places_by(test, ["device", "phase", "precision"]):
        device, precision = get_device(values["device"]), Precision(values["precision"])
        known = rows_with(models, {name: values[name] for name in ("phase", "precision")})
        size = known["device"].astype(str).value_counts()
        near = [get_device(slug) for slug in size[size >= LEAST_ROWS].index]
        if not near:
            continue
        kin = min(near, key=lambda other, device=device, precision=precision: _distance(device, other, precision))
        rows = known[known["device"] == kin.slug]
        rows = rows.sample(min(len(rows), _MOST_ROWS), random_state=0)
        fitted = RooflineRegression(kin, precision).fit(row_graphs(rows, dataset), rows["latency_ms"].to_numpy())
        carried = RooflineRegression(device, precision)
        carried.coefficients = fitted.coefficients
        predicted[places] = carried.predict(row_graphs(test.iloc[places], dataset))
    return predicted


def _distance(device: Device, other: Device, precision: Precision) -> tuple[bool, float]:
    """How unlike two devices are, to be compared: of another architecture, and the largest log ratio of speeds."""
    speeds = [np.log(device_features(each, precision)[_SPEEDS]) for each in (device, other)]
    return device.architecture != other.architecture, float(np.abs(speeds[0] - speeds[1]).max())
