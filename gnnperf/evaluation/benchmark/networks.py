"""Under which name the benchmark counts a network, and which networks a column of its tables is over."""

from __future__ import annotations

import pandas as pd

from gnnperf.datasets.splits import HEADLINE_FAMILIES
from gnnperf.evaluation.stack_spread import network_name

HEADLINE_NETWORKS = ("lenet", "alexnet", "vgg16")
"""What ResPerfNet and PerfNetV2 were published on."""
_ONE_NETWORK_FAMILIES = ("lenet", "alexnet")  # whose readings by frameworks go by many names

HEADLINE = "headline"
"""Name of the fold that leaves all headline families out together."""


def benchmark_network(model: str, family: str) -> str:
    """Name of the architecture that ``model`` is some framework's reading of."""
    return family if family in _ONE_NETWORK_FAMILIES else network_name(model)


def fold_of(family: str) -> str:
    """Name of the fold by which a family is predicted: by what was fitted without it."""
    return HEADLINE if family in HEADLINE_FAMILIES else family


def left_out(fold: str) -> tuple[str, ...]:
    """Families of which a fold's fits see no row; the headline families are in no fit."""
    return HEADLINE_FAMILIES if fold == HEADLINE else (*HEADLINE_FAMILIES, fold)


def table_groups(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Rows by the column of a table that they count in: headline networks, all three, then the other families."""
    headline = rows["network"].isin(HEADLINE_NETWORKS)
    groups = {name: rows[rows["network"] == name] for name in HEADLINE_NETWORKS}
    groups["all three"] = rows[headline]
    groups["other VGG"] = rows[(rows["family"] == "vgg") & ~headline]
    for family in sorted(set(rows["family"]) - set(HEADLINE_FAMILIES)):
        groups[family] = rows[rows["family"] == family]
    groups["all others"] = rows[~rows["family"].isin(HEADLINE_FAMILIES)]
    return {name: part for name, part in groups.items() if len(part)}
