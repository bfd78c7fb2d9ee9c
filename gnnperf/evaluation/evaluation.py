"""Scored rows of one protocol, and everything that is said of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd

from gnnperf.datasets.splits import HEADLINE_FAMILIES
from gnnperf.evaluation.metrics import Metrics, RowMetrics, summarise, summarise_rows
from gnnperf.evaluation.protocols.devices import GENERATION
from gnnperf.evaluation.protocols.folds import outside_search_spaces

REFERENCES = {
    "with_campaign": "predicted_ms",
    "analytic": "analytic_ms",
    "linear": "linear_ms",
    "operator_counts": "operator_counts_ms",
    "adapted": "adapted_ms",
    "repeated": "repeated_ms",
    "roofline": "roofline_ms",
    "scaled": "scaled_ms",
    "carried": "carried_ms",
}
"""What predictions are compared with: names in JSON, and the columns of the row table that hold their figures.

The last two are columns of the protocol ``devices`` alone (:func:`gnnperf.evaluation.device_scaling.with_scaling`).
"""


@dataclass
class Evaluation:
    """Scored rows of one protocol.

    Attributes:
        protocol: its name.
        device: slug of the device whose rows they are; of several, their slugs or ``all devices``.
        config: name of the configuration that was trained, or of the predictor.
        seed: of training, draws and bootstrap.
        rows: columns :data:`gnnperf.evaluation.scoring.ROW_COLUMNS`.
    """

    protocol: str
    device: str
    config: str
    seed: int
    rows: pd.DataFrame

    def only(self, precision: str | None = None, phase: str | None = None) -> Evaluation:
        """The same of the rows of one precision, one phase, or both."""
        rows = self.rows
        for column, wanted in (("precision", precision), ("phase", phase)):
            if wanted is not None:
                rows = rows[rows[column] == wanted]
        return replace(self, rows=rows)

    def summarised_rows(self) -> pd.DataFrame:
        """The rows that ``summary`` is over: those outside the search spaces, or all where there are no others."""
        outside = outside_search_spaces(self.rows)
        return outside if len(outside) else self.rows

    def metrics(self, rows: pd.DataFrame, column: str = "stack_only_ms") -> RowMetrics:
        """Metrics of some of the rows."""
        return summarise_rows(rows, column, self.seed)

    def groups(self) -> dict[str, pd.DataFrame]:
        """Rows by what they say something about; those that there are none of are left out."""
        outside = outside_search_spaces(self.rows)
        if self.protocol == "devices":  # a device's rows are there twice, and what is left out makes the difference
            generation = self.rows["fold"].str.startswith(GENERATION)
            networks = self.rows.index.isin(outside.index)
            groups = {
                "kin trained on": self.rows[networks & ~generation],
                "generation left out": self.rows[networks & generation],
                "search spaces, kin trained on": self.rows[~networks & ~generation],
                "search spaces, generation left out": self.rows[~networks & generation],
            }
            return {name: rows for name, rows in groups.items() if len(rows)}
        headline = outside["family"].isin(HEADLINE_FAMILIES)
        groups = {
            "headline families": outside[headline],
            "other families": outside[~headline],
            "search spaces": self.rows[~self.rows.index.isin(outside.index)],
        }
        if headline.any() and not headline.all():
            groups["outside search spaces"] = outside
        return {name: rows for name, rows in groups.items() if len(rows)}

    def table(self, *keys: str) -> list[dict]:
        """A record for each combination of values of ``keys``: metrics, and the MAPE of each reference."""
        return [
            dict(zip(keys, values, strict=True)) | self.record(part)
            for values, part in self.rows.groupby(list(keys), sort=True)
        ]

    def record(self, rows: pd.DataFrame) -> dict:
        """Metrics of some rows as plain data, and the MAPE of each reference on them (None where it has none)."""
        return self.metrics(rows).to_dict() | _mapes(rows)

    def family_mean(self) -> dict:
        """The mean over families of their own MAPE and of each reference's: each family counts once."""
        families = [_mapes(part) for _, part in self.rows.groupby("family")]
        means = pd.DataFrame(families).astype(float).mean()
        return {"rows": len(self.rows)} | {name: None if value != value else value for name, value in means.items()}

    def to_dict(self) -> dict:
        """Plain data for JSON; docs/evaluation.md says what each name means."""
        summarised = self.summarised_rows()
        return {
            "protocol": self.protocol,
            "device": self.device,
            "config": self.config,
            "seed": self.seed,
            "summary": self.record(summarised),
            "by_phase": {phase: self.record(part) for phase, part in summarised.groupby("phase")},
            "by_group": {name: self.record(part) for name, part in self.groups().items()},
            "by_family": self.table("phase", "family"),
            "by_stack": replace(self, rows=summarised).table("phase", "stack"),
            "by_batch": self.table("phase", "family", "batch"),
            "by_fold": self.table("phase", "fold"),
            **({"by_device": self.table("phase", "fold", "device")} if self.protocol == "devices" else {}),
            "baselines": {
                name: self._against(summarised, column)
                for name, column in REFERENCES.items()
                if column in summarised and summarised[column].notna().any()
            },
            "rows": [_row(row) for row in self.rows.astype(object).to_dict("records")],
        }

    def _against(self, rows: pd.DataFrame, column: str) -> dict:
        """A reference's metrics, and our MAPE on the rows that it has a figure for."""
        ours = _known(rows[rows[column].notna()], "stack_only_ms")
        return self.metrics(rows, column).to_dict() | {"mape_gnnperf": ours.mape}


def _mapes(rows: pd.DataFrame) -> dict[str, float | None]:
    """Our MAPE and that of each reference, None where it has no figure."""
    columns = {"mape": "stack_only_ms"} | {
        f"mape_{name}": column for name, column in REFERENCES.items() if column in rows
    }
    return {name: _known(rows, column).to_dict()["mape"] for name, column in columns.items()}


def _known(rows: pd.DataFrame, column: str) -> Metrics:
    """Metrics of the rows that a column has a figure for."""
    rows = rows[rows[column].notna()]
    return summarise(rows[column], rows["latency_ms"])


def _row(row: dict) -> dict:
    """One row for JSON, with its error."""
    plain = {name: None if value != value else value for name, value in row.items()}
    return plain | {"ape": abs(row["stack_only_ms"] / row["latency_ms"] - 1)}
