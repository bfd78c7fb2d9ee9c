"""Which measured networks the baselines on whole networks learn from, and their graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gnnperf.datasets.splits import SEARCH_SPACES
from gnnperf.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from gnnperf.datasets.graph_store import GraphStore
    from gnnperf.graph import GraphArrays


def whole_model_rows(rows: pd.DataFrame, most_in_spaces: int, seed: int = 0) -> pd.DataFrame:
    """FP32 rows of whole networks; of the search spaces, so many at most, drawn at random.

    Raises:
        DataError: there are none.
    """
    rows = rows[(rows["kind"] == "model") & (rows["precision"] == "fp32")]
    if rows.empty:
        raise DataError("this baseline is fitted on whole networks in FP32, and there are none")
    in_space = rows["family"].isin(SEARCH_SPACES).to_numpy()
    chosen = np.flatnonzero(in_space)
    if len(chosen) > most_in_spaces:
        chosen = np.random.default_rng(seed).choice(chosen, most_in_spaces, replace=False)
    return rows.iloc[np.sort(np.concatenate([np.flatnonzero(~in_space), chosen]))]


def row_graphs(rows: pd.DataFrame, graphs: GraphStore) -> list[GraphArrays]:
    """The rows' graphs, each at its row's batch."""
    return [graphs[row.graph_key].at_batch(row.batch) for row in rows.itertuples(index=False)]
