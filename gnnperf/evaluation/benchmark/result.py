"""Every row beside what every method says of it, and the errors by network, stack and batch size."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import pandas as pd

from gnnperf.evaluation.benchmark.claims import CLAIMS
from gnnperf.evaluation.benchmark.method import Method
from gnnperf.evaluation.benchmark.networks import HEADLINE_NETWORKS, table_groups
from gnnperf.evaluation.benchmark.truths import DEVICE, MEANING, PHASES, Truth
from gnnperf.evaluation.metrics import summarise

MEAN_OF_THREE = "mean of three"
"""Column of a table: each of the headline networks counts once, whatever its rows."""
OURS = "gnnperf"
_ROW = ["truth", "phase", "network", "model", "stack", "window", "optimizer", "batch", "latency_ms", "source",
        "citation", "fold"]  # fmt: skip


@dataclass
class Benchmark:
    """Predictions of all methods.

    Attributes:
        rows: of :func:`gnnperf.evaluation.benchmark.truths.truth_rows`, and a column of ms for each method, NaN where
            it says nothing.
        methods: in the order of the columns.
        missing: why a method says nothing of a fold, by its name and the fold's.
        cross_device: records of :func:`gnnperf.evaluation.benchmark.cross_device.cross_device`.
        notes: sentences about what was left out because something was not given.
    """

    rows: pd.DataFrame
    methods: tuple[Method, ...]
    missing: dict[tuple[str, str], str]
    cross_device: list[dict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def parts(self) -> list[tuple[Truth, str, pd.DataFrame]]:
        """The rows by truth and phase; where there are none, or no method says anything, is left out."""
        found = [
            (truth, phase, self.rows[(self.rows["truth"] == truth) & (self.rows["phase"] == phase)])
            for truth in Truth
            for phase in PHASES
        ]
        return [(truth, phase, rows) for truth, phase, rows in found if self.predicting(rows)]

    def predicting(self, rows: pd.DataFrame) -> list[Method]:
        """Methods that say something of one of the rows."""
        return [method for method in self.methods if rows[method.name].notna().any()]

    def errors(self, groups: dict[str, pd.DataFrame]) -> dict[str, dict[str, dict]]:
        """For each method and group of rows :func:`error_record`; groups it says nothing of are left out."""
        return {
            method.name: {name: record for name, rows in groups.items() if (record := error_record(rows, method.name))}
            for method in self.methods
        }

    def summary(self, rows: pd.DataFrame) -> dict[str, dict[str, dict]]:
        """Errors by the groups of a table, and the mean over the headline networks, where all are predicted."""
        records = self.errors(table_groups(rows))
        measured = [name for name in HEADLINE_NETWORKS if (rows["network"] == name).any()]
        for groups in records.values():
            mapes = [groups[name]["mape"] for name in measured if name in groups]
            if len(measured) > 1 and len(mapes) == len(measured):
                groups[MEAN_OF_THREE] = {"mape": sum(mapes) / len(mapes)}
        return records

    def by(self, rows: pd.DataFrame, *keys: str) -> list[dict]:
        """A record for each combination of values of ``keys``: number of rows, and errors by method."""
        records = []
        for values, part in rows.groupby(list(keys), sort=True):
            found = self.errors({"": part})
            errors = {name: groups[""] for name, groups in found.items() if groups}
            records.append(dict(zip(keys, values, strict=True)) | {"rows": len(part), "methods": errors})
        return records

    def table(self) -> pd.DataFrame:
        """Every row, its truth's source beside the predictions."""
        return self.rows[[*_ROW, *(method.name for method in self.methods)]].round(
            {"latency_ms": 5} | {method.name: 5 for method in self.methods}
        )

    def to_dict(self) -> dict:
        """Plain data for JSON; errors are fractions. docs/benchmark.md says what each name means."""
        parts = []
        for truth, phase, rows in self.parts():
            part = {"truth": str(truth), "phase": phase, "rows": len(rows), "methods": self.summary(rows)}
            part |= {f"by_{key}": self.by(rows, "network", key) for key in ("stack", "batch")}
            parts.append(part | {"by_network": self.by(rows, "network")})
        return {
            "device": DEVICE,
            "truths": {str(truth): meaning for truth, meaning in MEANING.items()},
            "methods": [
                {name: getattr(method, name) for name in ("name", "what", "paper", "told_stack")}
                | {"made_for": str(method.made_for)}
                for method in self.methods
            ],
            "published": [asdict(claim) for claim in CLAIMS],
            "parts": parts,
            "cross_device": self.cross_device,
            "missing": [
                {"method": name, "fold": fold, "reason": reason} for (name, fold), reason in self.missing.items()
            ],
            "notes": self.notes,
            "rows": [
                {name: None if value != value else value for name, value in row.items()}
                for row in self.table().astype(object).to_dict("records")
            ],
        }


def error_record(rows: pd.DataFrame, method: str) -> dict | None:
    """MAPE and bias of a method on the rows that it says something of; None where there is none.

    ``rows`` counts all, ``predicted`` those; where it is fewer, ``mape_gnnperf`` is our MAPE on the same rows.
    """
    known = rows[rows[method].notna()]
    if known.empty:
        return None
    metrics = summarise(known[method], known["latency_ms"])
    record = {"rows": len(rows), "predicted": len(known), "mape": metrics.mape, "worst_ape": metrics.worst_ape,
              "bias": metrics.bias}  # fmt: skip
    if len(known) < len(rows) and OURS in rows and known[OURS].notna().all():
        record["mape_gnnperf"] = summarise(known[OURS], known["latency_ms"]).mape
    return record
