"""One source, from the files its authors published to rows and graphs in a dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from gnnperf.datasets.checksums import verify_files
from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.graph_building import build_many
from gnnperf.datasets.graph_store import GraphStore
from gnnperf.datasets.readers import Source
from gnnperf.datasets.readers.published import load_published
from gnnperf.datasets.schema import validate
from gnnperf.errors import DataError


@dataclass(frozen=True)
class Progress:
    """Calls that a long import makes: ``start(total)`` before graphs are built, ``advance(count)`` while they are."""

    start: Callable[[int], None] = lambda total: None
    advance: Callable[[int], None] = lambda count: None


def read_source(source: Source, path: Path, verify: bool = True) -> pd.DataFrame:
    """Validated rows of a source; ``graph_key`` is still empty.

    Args:
        source: one of :data:`gnnperf.datasets.readers.READERS`.
        path: folder with upstream's files.
        verify: compare the files' checksums and the number of rows with the known version.

    Raises:
        DataError: files are missing, changed or damaged, a row is invalid, or rows are missing.
    """
    if not path.exists():
        raise DataError(f"{path} does not exist: give the folder that holds the files of {source.name}")
    if verify:
        verify_files(source, path)
    frame = validate(source.read(path), source.name)
    if frame.empty:
        raise DataError(f"{path} holds no measurements of {source.name}: is it the right folder?")
    if verify and len(frame) != source.rows:
        raise DataError(f"{source.name} gives {len(frame)} rows where {source.upstream} has {source.rows}")
    return frame


def import_source(
    source: Source,
    path: Path,
    dataset: Dataset,
    verify: bool = True,
    progress: Progress | None = None,
    processes: int | None = None,
) -> int:
    """Read a source, build its graphs and put both into the dataset, in the place of what it gave before.

    Returns:
        The number of rows.

    Raises:
        DataError: see :func:`read_source`; the dataset is then as it was.
    """
    frame = read_source(source, path, verify)
    frame = _with_graphs(frame, dataset.graphs, progress or Progress(), processes)
    dataset.replace_source(source.name, frame)
    return len(frame)


def published_dataset() -> Dataset:
    """The rows of ``data/published.csv`` and their graphs, in memory: nothing to fetch, nothing written.

    Raises:
        DataError: the file is missing or damaged.
    """
    frame = validate(load_published(), "published.csv")
    graphs = GraphStore()
    return Dataset(None, _with_graphs(frame, graphs, Progress(), processes=1), graphs)


def _with_graphs(frame: pd.DataFrame, graphs: GraphStore, progress: Progress, processes: int | None) -> pd.DataFrame:
    """The rows with the keys of their graphs, which are built and added to ``graphs``."""
    models = list(frame["model"].cat.categories)
    progress.start(len(models))
    keys = {spec: graphs.add(graph) for spec, graph in build_many(models, progress.advance, processes)}
    key_of_category = np.array([keys[spec] for spec in models], object)
    return frame.assign(graph_key=pd.Categorical(key_of_category[frame["model"].cat.codes]))
