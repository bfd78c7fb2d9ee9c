"""How far off the shipped predictor's design is on every measured GPU, on families of which no row was trained on.

    gnnperf evaluate families --data DATASET
    python scripts/measured_devices.py DATASET [--run runs/evaluate/families] [--json]

`gnnperf evaluate families` scores the rows of one device; its folds were trained on all of them, in focus or not. Each
whole network outside the search spaces is predicted here by the fold that left its family out, for its stack alone.
LeNet, AlexNet and VGG are not among them. Prints a line for each device and precision.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pandas as pd

from gnnperf.conditions import Phase
from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.splits import HEADLINE_FAMILIES
from gnnperf.errors import GnnperfError
from gnnperf.evaluation.fold_rows import score_folds
from gnnperf.evaluation.metrics import summarise
from gnnperf.evaluation.protocols.folds import outside_search_spaces
from gnnperf.predictor import SHIPPED


def by_device(rows: pd.DataFrame) -> list[dict]:
    """A record for each device and precision: rows and MAPE of each phase (None where there are none)."""
    rows = outside_search_spaces(rows[~rows["family"].isin(HEADLINE_FAMILIES)])
    records = []
    for (device, precision), part in rows.groupby(["device", "precision"]):
        record = {"device": device, "precision": precision}
        for phase in Phase:
            timed = part[part["phase"] == phase]
            found = summarise(timed["stack_only_ms"], timed["latency_ms"]).to_dict()
            record[str(phase)] = {name: found[name] for name in ("rows", "mape")}
        records.append(record)
    return records


def markdown(records: list[dict]) -> str:
    """Per cent, in brackets the number of rows."""
    lines = [f"| device | precision | {' | '.join(Phase)} |", "| --- | --- |" + " --- |" * len(Phase)]
    for record in records:
        cells = [
            f"{100 * figure['mape']:.1f} ({figure['rows']})" if figure["rows"] else ""
            for figure in (record[phase] for phase in Phase)
        ]
        lines.append(f"| {record['device']} | {record['precision']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:  # noqa: D103
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path, help="folder that `gnnperf data import` filled")
    parser.add_argument("--run", type=Path, default=Path("runs/evaluate/families"), help="folds that left families out")
    parser.add_argument("--json", action="store_true", help="records instead of a table")
    arguments = parser.parse_args()
    try:
        records = by_device(score_folds(arguments.run, SHIPPED, Dataset.open(arguments.dataset)))
    except GnnperfError as error:
        sys.exit(f"error: {error}")
    print(json.dumps(records, indent=2) if arguments.json else markdown(records))


if __name__ == "__main__":
    main()
