"""How much of a predictor's figures is the seed: adds a table of several runs to the first one's model card.

for seed in 0 1 2; do gnnperf train configs/base.yaml --seed $seed -o runs/base-$seed; done
python scripts/seed_spread.py runs/base-0 runs/base-1 runs/base-2
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

HEADING = "## Spread over seeds"
BEFORE = "## Limits"


def figures(metrics: dict) -> dict[str, float]:
    """Errors of one run in per cent, by what they are of: held-out families in all, and search spaces by batch."""
    found = {}
    for row in metrics["families"]:
        if row["family"] == "all":
            found[f"held-out families, {row['phase']}, {row['precision']}"] = 100 * row["mape_without_campaign"]
    for row in metrics["in_space"]:
        found[f"{row['family']}, batch {row['batch']}"] = 100 * row["mape"]
    return found


def section(runs: list[dict[str, float]]) -> str:
    """The section of the card: a figure's mean, standard deviation and values over runs."""
    what = (
        f"MAPE in per cent of {len(runs)} runs that differ in their seed alone; predictions for the stack alone, inside"
    )
    lines = [HEADING, "", what, "search spaces with the machine known (`scripts/seed_spread.py`).", ""]
    lines += ["| | mean | standard deviation | runs |", "| --- | --- | --- | --- |"]
    for name in runs[0]:
        values = [run[name] for run in runs if name in run]
        lines.append(
            f"| {name} | {np.mean(values):.1f} | {np.std(values, ddof=1):.1f} | "
            f"{', '.join(f'{value:.1f}' for value in values)} |"
        )
    return "\n".join(lines) + "\n\n"


def with_section(card: str, text: str) -> str:
    """The card with the section, in the place of an older one."""
    if HEADING in card:
        start = card.index(HEADING)
        card = card[:start] + card[card.index(BEFORE, start) :]
    return card.replace(BEFORE, text + BEFORE)


def main() -> None:  # noqa: D103
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="folders of `gnnperf train`, the one to write to first")
    runs = parser.parse_args().runs
    if len(runs) < 2:
        parser.error("a spread takes at least two runs")
    try:
        text = section([figures(json.loads((run / "metrics.json").read_text(encoding="utf-8"))) for run in runs])
        path = runs[0] / "CARD.md"
        path.write_text(with_section(path.read_text(encoding="utf-8"), text), encoding="utf-8")
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"no finished run of `gnnperf train` ({type(error).__name__}: {error})")
    print(text, end="")


if __name__ == "__main__":
    main()
