"""What an oracle would reach that knows the same network's times under other software stacks.

    python scripts/stack_spread.py DATASET [--device 1080ti] [--run runs/evaluate/families] [--exact]
                                           [--without caffe] [--json]

DATASET is a folder that `gnnperf data import` wrote. Forward passes in fp32 of every network that was measured under
two settings (stack, window) or more are predicted from the network's own times under the others, and from what other
families teach about the settings. With --run, the predictions of `gnnperf evaluate families` stand beside them.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pandas as pd

from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.splits import HEADLINE_FAMILIES
from gnnperf.devices import get_device
from gnnperf.errors import DataError, GnnperfError
from gnnperf.evaluation.stack_spread import ORACLES, oracle_latencies, spread_rows, summarise_oracles

_TABLES = {"by family": ["family"], "by stack and window": ["setting"], "by batch": ["batch"]}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--device", default="1080ti")
    parser.add_argument("--run", type=Path, help="folder of a finished `gnnperf evaluate families`")
    parser.add_argument("--exact", action="store_true", help="frameworks' readings of an architecture are not one")
    parser.add_argument("--without", default="", help="stacks to leave out, comma-separated")
    parser.add_argument("--json", action="store_true", help="data instead of tables")
    return parser.parse_args()


def _with_predictions(scored: pd.DataFrame, run: Path) -> pd.DataFrame:
    """The rows with the predictions of a run in the column ``gnnperf``, found by source and citation."""
    paths = sorted(run.glob("*/rows.csv"))
    if not paths:
        raise DataError(f"{run} holds no */rows.csv; `gnnperf evaluate families` writes them")
    predicted = pd.concat([pd.read_csv(path) for path in paths])
    predicted = predicted[predicted["phase"].isin(["inference", "forward"])]
    predicted = predicted.drop_duplicates(["source", "citation", "batch"])
    predicted = predicted[["source", "citation", "batch", "stack_only_ms"]].rename(columns={"stack_only_ms": "gnnperf"})
    return scored.merge(predicted, how="left", on=["source", "citation", "batch"])


def _groups(scored: pd.DataFrame) -> dict[str, pd.DataFrame]:
    headline = scored["family"].isin(HEADLINE_FAMILIES)
    return {"other families": scored[~headline], "headline families": scored[headline]}


def _print(groups: dict[str, pd.DataFrame]) -> None:
    for name, part in groups.items():
        columns = [*ORACLES, *(["gnnperf"] if "gnnperf" in part else [])]
        for title, keys in {"": [], **_TABLES}.items():
            records = summarise_oracles(part, keys)
            print(f"\n{name} {title}".rstrip())
            print("|".join(["", *(f" {head} " for head in [*keys, "rows", *columns]), ""]))
            print("|" + " --- |" * (len(keys) + 1 + len(columns)))
            for record in records:
                cells = [f" {record[key]} " for key in [*keys, "rows"]] + [_cell(record, column) for column in columns]
                print("|".join(["", *cells, ""]))


def _cell(record: dict, column: str) -> str:
    """MAPE in per cent, and the number of rows where it is not all of them."""
    if record[column] is None:
        return " - "
    rows = record[f"rows_{column}"]
    return f" {100 * record[column]:.1f}" + (f" ({rows}) " if rows != record["rows"] else " ")


def main() -> None:
    """Compute and print."""
    arguments = _arguments()
    try:
        device = get_device(arguments.device).slug
        frame = Dataset.open(arguments.dataset).frame
        frame = frame[~frame["stack"].isin(arguments.without.split(","))]
        scored = oracle_latencies(spread_rows(frame, exact=arguments.exact), device)
        if scored.empty:
            raise DataError(f"no network was measured under two stacks on {device}")
        if arguments.run:
            scored = _with_predictions(scored, arguments.run)
    except GnnperfError as error:
        sys.exit(f"error: {error}")
    groups = _groups(scored)
    if not arguments.json:
        print("MAPE in per cent. " + "; ".join(f"{name}: {what}" for name, what in ORACLES.items()))
        _print(groups)
        return
    found = {
        name: {"summary": summarise_oracles(part)[0]}
        | {title.replace(" ", "_"): summarise_oracles(part, keys) for title, keys in _TABLES.items()}
        for name, part in groups.items()
    }
    rows = scored.astype(object).where(scored.notna(), None).to_dict("records")
    print(json.dumps({"device": device, "oracles": ORACLES, "groups": found, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
