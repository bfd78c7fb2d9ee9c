"""Which measurements a command works on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gnnperf.datasets.dataset import Dataset

DEFAULT_DATA = Path("gnnperf-data")
TrainingDataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        envvar="GNNPERF_DATA",
        help="Folder that `gnnperf data import` filled. Default: gnnperf-data, or the rows that ship with gnnperf "
        "where the configuration asks for them.",
    ),
]


def open_dataset(data: Path | None, *, published: bool) -> Dataset:
    """The folder that a user names; else the rows that ship where a configuration asks for them, or the default folder.

    Raises:
        DataError: there is no such folder, or it is damaged.
    """
    from gnnperf.datasets.dataset import Dataset
    from gnnperf.datasets.importing import published_dataset

    return published_dataset() if data is None and published else Dataset.open(data or DEFAULT_DATA)
