"""Is a dataset still what was imported? Rows, counts and graphs, everything that can be told without the sources."""

from __future__ import annotations

from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.readers import READERS, Source
from gnnperf.datasets.schema import validate
from gnnperf.errors import DataError


def check_dataset(dataset: Dataset) -> list[str]:
    """Problems found, a sentence each; none for a sound dataset."""
    problems = []
    frame = dataset.frame
    try:
        validate(frame, str(dataset.folder))
    except DataError as error:
        problems.append(str(error))
    for name, count in frame["source"].value_counts().items():
        if name in READERS and not _complete(READERS[name], count):
            problems.append(f"{name} has {count} rows, its known version gives {READERS[name].rows}")
    missing = [key for key in frame["graph_key"].cat.categories if key not in dataset.graphs]
    if missing:
        count = int(frame["graph_key"].isin(missing).sum())
        problems.append(f"{count} rows refer to graphs that the graph store does not have, such as {missing[0]!r}")
    damaged = dataset.graphs.damaged_keys()
    if damaged:
        problems.append(f"{len(damaged)} graphs do not match their keys, the first is {damaged[0]}")
    return problems


def _complete(source: Source, count: int) -> bool:
    """Whether a source gave as many rows as it can; of one whose graphs are made apart, some may have been skipped."""
    return count <= source.rows if source.graphs_from else count == source.rows
