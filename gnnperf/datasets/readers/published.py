"""Timings that gnnperf carries with it: ``data/published.csv``, facts out of the public sources, each with a citation.

Every public fp32 row of LeNet, AlexNet and VGG on the GTX 1080 Ti (the headline benchmark's truths), and whole-model
rows of other families on the same card: enough to train a small network without fetching anything.
``scripts/make_published.py`` writes the file. Its rows are those of the other readers, so a table that holds both
holds them twice; ``gnnperf data import all`` leaves them out.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from gnnperf.datasets.schema import measurements
from gnnperf.errors import DataError
from gnnperf.resources import resource

NAME = "published"
FILES = ("published.csv",)
CSV_COLUMNS = (
    "source",
    "model",
    "device",
    "stack",
    "framework_version",
    "precision",
    "batch",
    "phase",
    "window",
    "optimizer",
    "latency_ms",
    "spread_ms",
    "repeats",
    "use",
    "citation",
)


def load_published(path: Path | None = None) -> pd.DataFrame:
    """The rows in the schema, ``source`` naming the reader that they come from.

    Raises:
        DataError: the file is missing or in another format.
    """
    path = path or resource("data/published.csv")
    try:
        table = pd.read_csv(path, dtype={"device": str, "framework_version": str})
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise DataError(f"{path} is no CSV: {error}") from None
    missing = [name for name in CSV_COLUMNS if name not in table]
    if missing:
        raise DataError(f"{path}: columns missing: {', '.join(missing)}")
    table["framework_version"] = table["framework_version"].fillna("")
    return measurements(**{name: table[name] for name in CSV_COLUMNS})


def read(folder: Path) -> pd.DataFrame:
    """The rows of ``folder / "published.csv"`` as one source, the original one in front of each citation.

    Raises:
        DataError: the file is missing or in another format.
    """
    frame = load_published(folder / FILES[0])
    citation = frame["source"].astype(str) + ": " + frame["citation"].astype(str)
    return frame.assign(source=pd.Categorical([NAME] * len(frame)), citation=citation.astype("category"))
