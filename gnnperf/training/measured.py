"""Which measured networks stand for a training set, so that a predictor can say how near an input is to it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gnnperf.datasets.graph_store import GraphStore
from gnnperf.devices import get_device
from gnnperf.similarity import MeasuredNetwork, MeasuredNetworks, describe
from gnnperf.training.samples import conditions_of

MOST_NETWORKS = 400
_GRAPHS_OF_A_FAMILY = 200  # a search space has thousands that are alike


def measured_networks(train: pd.DataFrame, graphs: GraphStore) -> MeasuredNetworks:
    """Networks of a training set such that no other one of it is far from all of them.

    Args:
        train: rows; layers alone count only where there is nothing else.
        graphs: of the rows.
    """
    cases = distinct_cases(train)
    return spread_networks(cases, describe_rows(cases, graphs))


def distinct_cases(train: pd.DataFrame) -> pd.DataFrame:
    """A row for each graph, batch, device, precision and phase of :func:`some_of_each_family`."""
    columns = ["graph_key", "batch", "device", "precision", "phase"]
    return some_of_each_family(train).drop_duplicates(columns, ignore_index=True)


def some_of_each_family(train: pd.DataFrame) -> pd.DataFrame:
    """Whole-model rows (layers, where there is nothing else); of families of very many graphs, those of some graphs."""
    models = train[train["kind"] == "model"]
    models = models if len(models) else train
    kept = []
    for _, part in models.groupby("family", observed=True):
        keys = np.sort(part["graph_key"].astype(str).unique())
        chosen = keys[:: -(-len(keys) // _GRAPHS_OF_A_FAMILY)]
        kept.append(part[part["graph_key"].isin(chosen)])
    return pd.concat(kept, ignore_index=True)


def spread_networks(cases: pd.DataFrame, descriptors: np.ndarray, most: int = MOST_NETWORKS) -> MeasuredNetworks:
    """At most ``most`` of the cases, such that the farthest other case is near.

    Each next one is the farthest from those before. Gonzalez: Clustering to minimize the maximum intercluster distance.
    Theoretical Computer Science 38, 1985: the farthest case is at most twice as far as with the best choice.

    Args:
        cases: rows as :func:`distinct_cases` gives them.
        descriptors: ``[rows, D]`` of these.
        most: how many at most.
    """
    centre = descriptors.mean(axis=0)
    chosen = [int(np.square(descriptors - centre).sum(axis=1).argmin())]
    distance = np.square(descriptors - descriptors[chosen[0]]).sum(axis=1)
    while len(chosen) < most and distance.max() > 0:
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, np.square(descriptors - descriptors[chosen[-1]]).sum(axis=1))
    networks = [
        MeasuredNetwork(str(row.model), str(row.family), str(row.stack), int(row.batch), str(row.phase))
        for row in cases.iloc[chosen].itertuples(index=False)
    ]
    return MeasuredNetworks(networks, descriptors[chosen])


def describe_rows(frame: pd.DataFrame, graphs: GraphStore) -> np.ndarray:
    """``[rows, len(DESCRIPTOR_FIELDS)]`` descriptors of measured rows."""
    return np.stack(
        [
            describe(graphs[row.graph_key].at_batch(row.batch), get_device(row.device), conditions_of(row))
            for row in frame.itertuples(index=False)
        ]
    )
