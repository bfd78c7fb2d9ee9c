"""The one row that every measurement becomes, whatever its source: columns, types and checks."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import pandas as pd

from gnnperf.conditions import Optimizer, Phase, Precision, Stack, Window
from gnnperf.errors import DataError


class Kind(StrEnum):
    """What was timed."""

    MODEL = "model"  # a whole network
    LAYER = "layer"  # a single layer, run by itself


class Use(StrEnum):
    """What the source's licence allows."""

    TRAIN = "train"  # shipped weights may be trained on it
    EVALUATE = "evaluate"  # no open licence: evaluation, and baselines inside a benchmark run, only


ENUMS: dict[str, type[StrEnum]] = {
    "kind": Kind,
    "stack": Stack,
    "precision": Precision,
    "phase": Phase,
    "window": Window,
    "optimizer": Optimizer,
    "use": Use,
}

DTYPES = {
    "source": "category",  # name of the reader
    "model": "category",  # zoo specification: gnnperf.zoo.build(model) gives the ONNX graph
    "family": "category",  # gnnperf.zoo.family(model): what is held out together
    "kind": "category",
    "device": "category",  # slug of the device registry
    "stack": "category",
    "framework_version": "category",  # "" where the source does not say
    "precision": "category",
    "batch": "int32",
    "phase": "category",
    "window": "category",
    "optimizer": "category",
    "latency_ms": "float64",  # of the whole batch; median where the source gives repeats
    "spread_ms": "float64",  # standard deviation over repeats, NaN where unknown
    "repeats": "int32",  # 0 where unknown
    "use": "category",
    "graph_key": "category",  # key of the structure in the graph store; "" until the graph is built
    "citation": "category",  # file within the source, or a URL
}
COLUMNS = tuple(DTYPES)
_MAY_BE_EMPTY = ("framework_version", "graph_key")


def measurements(
    *,
    source: str,
    model: object,
    device: object,
    stack: object,
    batch: object,
    latency_ms: object,
    citation: object,
    kind: object = Kind.MODEL,
    framework_version: object = "",
    precision: object = Precision.FP32,
    phase: object = Phase.INFERENCE,
    window: object = Window.DEVICE,
    optimizer: object = Optimizer.NONE,
    spread_ms: object = np.nan,
    repeats: object = 0,
    use: object = Use.TRAIN,
) -> pd.DataFrame:
    """Rows in the schema from columns (sequences of one length) and constants; ``family`` comes from the zoo.

    At least one argument has to be a sequence. The result is not validated.
    """
    from gnnperf import zoo

    given = dict(locals())
    del given["zoo"]
    frame = pd.DataFrame({name: _plain(value) for name, value in given.items()})
    models = frame["model"].astype("category")
    families = np.array([zoo.family(spec) for spec in models.cat.categories], object)
    frame["model"], frame["family"], frame["graph_key"] = models, families[models.cat.codes], ""
    return typed(frame)


def _plain(value: object) -> object:
    """Enum members as the strings that tables hold."""
    return value.value if isinstance(value, StrEnum) else value


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """The schema's columns in the schema's order and types.

    Raises:
        DataError: a column is missing or holds values of another kind (text among numbers).
    """
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise DataError(f"columns missing from the measurements: {', '.join(missing)}")
    columns = {}
    for name, dtype in DTYPES.items():
        column = frame[name]
        try:
            if dtype == "category":
                if not isinstance(column.dtype, pd.CategoricalDtype):
                    column = column.fillna("").astype(str).astype("category")
                elif column.hasnans:
                    column = column.astype(str).replace("nan", "").astype("category")
                columns[name] = column.cat.remove_unused_categories()
            else:
                columns[name] = column.astype(dtype)
        except (ValueError, TypeError) as error:
            raise DataError(f"column {name} holds values that are not {dtype}: {error}") from None
    return pd.DataFrame(columns, index=frame.index)


def validate(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """Check every row; ``where`` names the table in messages.

    Returns:
        The frame in the schema's types (:data:`DTYPES`).

    Raises:
        DataError: a latency that is not a positive finite number, a batch below 1, an unknown value in a column with
            a closed set of values, or an empty name; the message gives the row, its model, device and citation.
    """
    frame = typed(frame)
    latency = frame["latency_ms"].to_numpy()
    _refuse(frame, where, ~(np.isfinite(latency) & (latency > 0)), "latency_ms", "has to be a positive number")
    spread = frame["spread_ms"].to_numpy()
    _refuse(frame, where, ~np.isnan(spread) & ~((spread >= 0) & np.isfinite(spread)), "spread_ms", "is no spread")
    _refuse(frame, where, frame["batch"].to_numpy() < 1, "batch", "has to be 1 or more")
    _refuse(frame, where, frame["repeats"].to_numpy() < 0, "repeats", "has to be 0 (unknown) or more")
    for name, dtype in DTYPES.items():
        if dtype != "category":
            continue
        allowed = {member.value for member in ENUMS[name]} if name in ENUMS else None
        for category in frame[name].cat.categories:
            if allowed is not None and category not in allowed:
                rule = f"has to be one of {', '.join(sorted(allowed))}"
            elif category == "" and name not in _MAY_BE_EMPTY:
                rule = "is empty"
            else:
                continue
            _refuse(frame, where, (frame[name] == category).to_numpy(), name, rule)
    return frame


def _refuse(frame: pd.DataFrame, where: str, bad: np.ndarray, column: str, rule: str) -> None:
    if not bad.any():
        return
    position = int(np.flatnonzero(bad)[0])
    row = frame.iloc[position]
    others = f" ({int(bad.sum())} rows in all)" if bad.sum() > 1 else ""
    raise DataError(
        f"{where}, row {position}: {column} {rule}, not {row[column]!r}{others}; model {row['model']}, "
        f"device {row['device']}, from {row['citation']}"
    )


def concatenate(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Rows of several tables in the schema as one, categories united."""
    frames = [typed(frame) for frame in frames if len(frame)]
    if not frames:
        return typed(pd.DataFrame({name: [] for name in COLUMNS}))
    columns = {}
    for name, dtype in DTYPES.items():
        parts = [frame[name] for frame in frames]
        columns[name] = (
            pd.Series(pd.api.types.union_categoricals(parts))
            if dtype == "category"
            else pd.concat(parts, ignore_index=True)
        )
    return pd.DataFrame(columns)
