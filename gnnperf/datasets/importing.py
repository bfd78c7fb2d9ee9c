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
from gnnperf.datasets.readers import Source, measured
from gnnperf.datasets.readers.published import load_published
from gnnperf.datasets.schema import typed, validate
from gnnperf.errors import DataError
from gnnperf.zoo.user_file import is_file


@dataclass(frozen=True)
class Progress:
    """Calls that a long import makes: ``start(total)`` before graphs are built, ``advance(count)`` while they are.

    ``skip(count)`` is called with the number of rows that are left out because no graph of their networks is at hand.
    """

    start: Callable[[int], None] = lambda total: None
    advance: Callable[[int], None] = lambda count: None
    skip: Callable[[int], None] = lambda count: None


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
    made: GraphStore | None = None,
) -> int:
    """Read a source, build its graphs and put both into the dataset, in the place of what it gave before.

    Args:
        source: one of :data:`gnnperf.datasets.readers.READERS`.
        path: folder with upstream's files.
        dataset: what to add to.
        verify: see :func:`read_source`.
        progress: what to call on the way.
        processes: how many build graphs; all cores by default.
        made: the graphs, by specification, of a source whose networks the zoo cannot build
            (:attr:`Source.graphs_from`); rows of networks that it does not hold are skipped.

    Returns:
        The number of rows.

    Raises:
        DataError: see :func:`read_source`, or ``made`` is needed and holds none of the networks; the dataset is then
            as it was.
    """
    frame = read_source(source, path, verify)
    progress = progress or Progress()
    if source.graphs_from:
        frame = _with_made_graphs(frame, dataset.graphs, progress, _required(source, made))
    else:
        frame = _with_graphs(frame, dataset.graphs, progress, processes)
    dataset.replace_source(source.name, frame)
    return len(frame)


def import_measured(
    table: Path, dataset: Dataset, progress: Progress | None = None, processes: int | None = None
) -> int:
    """Read a table of ``gnnperf measure`` and its graphs into the dataset, in the place of what it gave before.

    Args:
        table: the table; its graphs lie beside it.
        dataset: what to add to.
        progress: what to call on the way; ``skip`` with the number of lines taken on a busy machine.
        processes: how many build graphs; all cores by default.

    Returns:
        The number of rows.

    Raises:
        DataError: the table or its graphs are missing or invalid; the dataset is then as it was.
    """
    progress = progress or Progress()
    frame, busy = measured.read(table)
    frame = validate(frame, str(table))
    if busy:
        progress.skip(busy)
    made = measured.graphs_of(table)
    absent = [spec for spec in frame["model"].cat.categories if is_file(spec) and spec not in made.names]
    if absent:
        raise DataError(f"{table}: the graph of {absent[0]} is not beside it ({table.stem}.graphs.npz): measure again")
    frame = _with_graphs(frame, dataset.graphs, progress, processes, made)
    dataset.replace_source(measured.source_name(table), frame)
    return len(frame)


def published_dataset() -> Dataset:
    """The rows of ``data/published.csv`` and their graphs, in memory: nothing to fetch, nothing written.

    Raises:
        DataError: the file is missing or damaged.
    """
    frame = validate(load_published(), "published.csv")
    graphs = GraphStore()
    return Dataset(None, _with_graphs(frame, graphs, Progress(), processes=1), graphs)


def _with_graphs(
    frame: pd.DataFrame,
    graphs: GraphStore,
    progress: Progress,
    processes: int | None,
    made: GraphStore | None = None,
) -> pd.DataFrame:
    """The rows with the keys of their graphs, which are added to ``graphs``: those in ``made``, the others built."""
    names = made.names if made is not None else {}
    keys = {spec: graphs.add(made[names[spec]]) for spec in frame["model"].cat.categories if spec in names}
    models = [spec for spec in frame["model"].cat.categories if spec not in names]
    progress.start(len(models))
    keys |= {spec: graphs.add(graph) for spec, graph in build_many(models, progress.advance, processes)}
    return _keyed(frame, keys)


def _required(source: Source, made: GraphStore | None) -> GraphStore:
    if made is None or not made.names:
        raise DataError(
            f"the networks of {source.name} are not in the zoo: make their graphs with {source.graphs_from}, "
            "then import with --graphs FILE"
        )
    return made


def _with_made_graphs(frame: pd.DataFrame, graphs: GraphStore, progress: Progress, made: GraphStore) -> pd.DataFrame:
    """The rows whose graphs were made before, with the keys of these, which are added to ``graphs``."""
    known = frame["model"].isin(list(made.names))
    if not known.any():
        raise DataError(f"the file of graphs holds none of the networks, such as {frame['model'].iloc[0]}")
    progress.skip(int((~known).sum()))
    frame = typed(frame[known].reset_index(drop=True))
    models = list(frame["model"].cat.categories)
    progress.start(len(models))
    keys = {}
    for spec in models:
        keys[spec] = graphs.add(made[made.names[spec]])
        progress.advance(1)
    return _keyed(frame, keys)


def _keyed(frame: pd.DataFrame, keys: dict[str, str]) -> pd.DataFrame:
    """The rows with the keys of their graphs, given by model."""
    key_of_category = np.array([keys[spec] for spec in frame["model"].cat.categories], object)
    return frame.assign(graph_key=pd.Categorical(key_of_category[frame["model"].cat.codes]))
