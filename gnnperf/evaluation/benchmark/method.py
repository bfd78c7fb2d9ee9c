"""What the benchmark asks of everything that it compares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gnnperf.evaluation.benchmark.truths import Truth

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from gnnperf.datasets.graph_store import GraphStore


class Method(Protocol):
    """A way to predict the latencies of networks that it has seen no row of.

    Attributes:
        name: column in tables and files.
        what: one line: what it is, what it learned from and what it is told of a row.
        paper: authors, title, venue and year; "" where there is none.
        made_for: the truth that it predicts; on the other one its figure says little.
        told_stack: whether it knows the row's software stack, timing window and optimizer, beside network, device,
            batch and phase.
    """

    name: str
    what: str
    paper: str
    made_for: Truth
    told_stack: bool

    def identity(self, fold: str) -> str | None:
        """Digest of everything that the method learns; None where nothing is fitted, and predictions are not kept.

        Folds of one identity are predicted by one fit.
        """
        ...

    def predict(self, fold: str, rows: pd.DataFrame, graphs: GraphStore) -> np.ndarray:
        """``[rows]`` ms; NaN where the method is not defined.

        Args:
            fold: whose families it must not have seen, see :func:`gnnperf.evaluation.benchmark.networks.left_out`.
            rows: of :func:`gnnperf.evaluation.benchmark.truths.truth_rows`, all of the fold.
            graphs: their graphs.

        Raises:
            GnnperfError: it can predict none of them; the message says what is missing.
        """
        ...
