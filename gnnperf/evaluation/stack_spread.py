"""What an oracle would reach that knows the same network's times under other software stacks.

A latency is modelled as ``log ms = network at this batch on this device + setting``, a setting being a stack, a timing
window and a phase (inference, or the forward part of a training step). An oracle knows the network's own part from
its rows under the other settings, and needs only the difference between settings, from networks of other families.
Its error is what stacks do differently to different families, which no effect of a stack alone can tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pandas as pd

from gnnperf.datasets.splits import HEADLINE_FAMILIES
from gnnperf.evaluation.metrics import summarise
from gnnperf.evaluation.protocols.folds import outside_search_spaces
from gnnperf.training.split import is_anomalous

ORACLES = {
    "own_device": "settings' differences from other families on the same device",
    "all_devices": "from other families on every device",
    "by_batch": "from other families on the same device, for each batch size by itself",
    "own_family": "from the family's other networks alone, on the same device",
    "no_difference": "the network's mean under other settings as it is",
}
"""Names of the oracles' columns, and where each knows the differences between settings from."""
_CELL = ["device", "network", "batch"]
_PHASES = ("inference", "forward")
_READINGS = re.compile(r"^(caffe|mxnet|tf|preact)_|@\d+$")


def network_name(model: str) -> str:
    """What frameworks' own readings of an architecture have in common: ``alexnet`` for ``caffe_alexnet@224``."""
    return _READINGS.sub("", _READINGS.sub("", model))


def spread_rows(frame: pd.DataFrame, *, exact: bool = False) -> pd.DataFrame:
    """Forward passes of whole networks, in fp32, that were measured under two settings or more.

    Args:
        frame: rows of the schema.
        exact: tell frameworks' readings of an architecture apart (AlexNet with groups and without, a ResNet that
            strides in its first or second convolution or is pre-activation); otherwise they are one network.

    Returns:
        Columns device, network, family, batch, setting, stack, window, source, citation and latency_ms; where a
        setting was measured more than once, the geometric mean, named by its first row.
    """
    frame = outside_search_spaces(frame)
    frame = frame[(frame["kind"] == "model") & (frame["precision"] == "fp32") & frame["phase"].isin(_PHASES)]
    frame = frame[~is_anomalous(frame)]
    text = frame.astype({name: str for name in frame.columns if isinstance(frame[name].dtype, pd.CategoricalDtype)})
    text["network"] = text["model"] if exact else text["model"].map(network_name)
    text["setting"] = text["stack"] + "/" + text["window"] + np.where(text["phase"] == "forward", "/forward", "")
    text["log_ms"] = np.log(text["latency_ms"])
    first = ["family", "stack", "window", "source", "citation"]
    rows = text.groupby([*_CELL, "setting"], as_index=False).agg(
        log_ms=("log_ms", "mean"), **{name: (name, "first") for name in first}
    )
    rows["latency_ms"] = np.exp(rows.pop("log_ms"))
    return rows[rows.groupby(_CELL)["setting"].transform("size") > 1].reset_index(drop=True)


def setting_differences(rows: pd.DataFrame) -> dict[str, float]:
    """Log ms of each setting against the others, by least squares of ``network, batch and device + setting``.

    Only differences inside a group of settings that share networks mean anything; :func:`_linked` tells them apart.
    """
    if rows.empty:
        return {}
    cells = rows.groupby(_CELL).ngroup().to_numpy()
    settings, setting = np.unique(rows["setting"], return_inverse=True)
    inputs = np.zeros((len(rows), len(settings)))
    inputs[np.arange(len(rows)), setting] = 1
    log_ms = np.log(rows["latency_ms"].to_numpy())
    # Within its cell every row is measured from the cell's mean, so that the networks' own parts drop out.
    inputs, log_ms = (_from_means(values, cells) for values in (inputs, log_ms[:, None]))
    return dict(zip(settings.tolist(), np.linalg.lstsq(inputs, log_ms, rcond=None)[0][:, 0].tolist(), strict=True))


def _from_means(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    sums = np.zeros((group.max() + 1, values.shape[1]))
    np.add.at(sums, group, values)
    return values - (sums / np.bincount(group)[:, None])[group]


def _linked(rows: pd.DataFrame) -> dict[str, int]:
    """For each setting the number of its group: settings are in one where a chain of shared networks leads across."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    settings, setting = np.unique(rows["setting"], return_inverse=True)
    cells = rows.groupby(_CELL).ngroup().to_numpy()
    count = len(settings) + (cells.max() + 1 if len(cells) else 0)
    edges = coo_matrix((np.ones(len(rows)), (setting, len(settings) + cells)), (count, count))
    return dict(zip(settings.tolist(), connected_components(edges)[1].tolist(), strict=False))


def _predict(rows: pd.DataFrame, known: pd.DataFrame) -> pd.Series:
    """For each row the mean over its network's other settings, each brought to the row's by what ``known`` teaches.

    NaN where ``known`` does not link the row's setting with any of the others.
    """
    differences, group = setting_differences(known), _linked(known)
    predicted = pd.Series(np.nan, index=rows.index)
    for _, cell in rows.groupby(_CELL):
        log_ms = np.log(cell["latency_ms"])
        for index, setting in cell["setting"].items():
            others = [
                log_ms[other] - differences[name] + differences[setting]
                for other, name in cell["setting"].items()
                if other != index and group.get(name, -1) == group.get(setting, -2)
            ]
            if others:
                predicted[index] = np.exp(np.mean(others))
    return predicted


def oracle_latencies(rows: pd.DataFrame, device: str) -> pd.DataFrame:
    """What each of :data:`ORACLES` says of the rows of a device.

    No oracle but ``own_family`` knows another network of the row's family; the headline families teach nothing about
    settings, as in ``gnnperf evaluate families``.

    Args:
        rows: what :func:`spread_rows` gave.
        device: slug.

    Returns:
        The device's rows with a column in ms for each oracle, NaN where it does not know the setting.
    """
    scored = rows[rows["device"] == device].copy()
    if scored.empty:
        return scored.assign(**dict.fromkeys(ORACLES, np.nan))
    return pd.concat([_fold(rows, part, device) for _, part in scored.groupby("family")]).sort_index()


def _fold(rows: pd.DataFrame, part: pd.DataFrame, device: str) -> pd.DataFrame:
    """One family's rows on the device, with the oracles' columns."""
    others = rows[~rows["family"].isin([*HEADLINE_FAMILIES, part["family"].iloc[0]])]
    here = others[others["device"] == device]
    log_ms = np.log(part["latency_ms"])
    cells = log_ms.groupby([part[name] for name in _CELL])
    return part.assign(
        own_device=_predict(part, here),
        all_devices=_predict(part, others),
        by_batch=pd.concat([_predict(same, here[here["batch"] == batch]) for batch, same in part.groupby("batch")]),
        own_family=pd.concat(
            [_predict(same, part[part["network"] != network]) for network, same in part.groupby("network")]
        ),
        no_difference=np.exp((cells.transform("sum") - log_ms) / (cells.transform("size") - 1)),
    )


def summarise_oracles(scored: pd.DataFrame, keys: Iterable[str] = ()) -> list[dict]:
    """MAPE of each oracle as fractions, on the rows that it knows; None where it knows none.

    Args:
        scored: what :func:`oracle_latencies` gave; a column ``gnnperf`` of predictions in ms is summarised too.
        keys: columns to tell apart; without any, one record over all rows.

    Returns:
        Records of the keys, ``rows``, and for each oracle its MAPE and, as ``rows_ORACLE``, its number of rows.
    """
    keys = list(keys)
    groups = scored.groupby(keys) if keys else [((), scored)]
    records = []
    for values, part in groups:
        record = dict(zip(keys, values, strict=True)) | {"rows": len(part)}
        for name in (*ORACLES, *(["gnnperf"] if "gnnperf" in part else [])):
            known = part[part[name].notna()]
            metrics = summarise(known[name], known["latency_ms"])
            record |= {name: metrics.mape if metrics.rows else None, f"rows_{name}": metrics.rows}
        records.append(record)
    return records
