"""How far the per-layer baselines are off on layers that they never saw, by kind of layer and phase.

    python scripts/baseline_layers.py DATASET --resperfnet FOLDER [--only resperfnet,justus2018] [--device 1080ti]
                                      [--json]

DATASET is a folder that `gnnperf data import justus2018` wrote: a fifth of its layers is held out, the rest is fitted
on (all devices), and errors are those of the held-out layers of one device. FOLDER holds ResPerfNet's measurements,
whose authors say which layers are for training and which for testing. The check that a baseline is what its authors
built: it has to predict layers about as well as they say.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from gnnperf.baselines import BASELINES
from gnnperf.baselines.layer_sum import LayerSumBaseline
from gnnperf.baselines.layers import LayerKind, rows_of_kind
from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.readers.justus2018 import NAME as JUSTUS2018
from gnnperf.datasets.readers.resperfnet import NAME as RESPERFNET
from gnnperf.datasets.readers.resperfnet import is_test_layer, read_layers
from gnnperf.datasets.splits import split_by_graph
from gnnperf.devices import get_device
from gnnperf.errors import DataError, GnnperfError

_HELD_OUT = 0.2
PUBLISHED = {
    "justus2018": "up to 200 % on whole networks (as PerfNetV2's abstract has it)",
    "perfnetv2": "13.1 % on LeNet, AlexNet and VGG16, GTX 1080 Ti (abstract)",
    "resperfnet": "8.4 % on LeNet, AlexNet and VGG16, GTX 1080 Ti (abstract; the truth there is sums of layers)",
    "cdmpp": "14.03 % across models and 10.85 % across devices (abstract)",
}
"""What the authors report."""


def layer_errors(baseline: LayerSumBaseline, test: pd.DataFrame) -> list[dict]:
    """Errors of a fitted baseline on single layers: a record for each kind of layer and phase that it knows.

    Args:
        baseline: fitted.
        test: rows of the schema, layers that it was not fitted on.
    """
    relative = baseline.layer_latencies(test) / test["latency_ms"].to_numpy() - 1
    scored = test.assign(relative=relative)
    records = []
    for kind in LayerKind:
        of_kind = rows_of_kind(scored, kind).dropna(subset=["relative"])
        for phase, part in of_kind.groupby("phase", observed=True):
            records.append(
                {
                    "baseline": baseline.name,
                    "layers": kind.value,
                    "phase": phase,
                    "rows": len(part),
                    "mape": float(part["relative"].abs().mean()),
                    "median": float(part["relative"].abs().median()),
                    "bias": float(np.log1p(part["relative"]).mean()),
                }
            )
    return records


def run(names: list[str], measured: dict[str, tuple[pd.DataFrame, pd.DataFrame]]) -> Iterator[dict]:
    """Fit each baseline on the training layers of its source and score it on the test layers.

    Args:
        names: of :data:`BASELINES`, per-layer ones.
        measured: by source, rows to fit on and rows to score.
    """
    for name in names:
        baseline = BASELINES[name]()
        train, test = measured[baseline.source]
        yield from layer_errors(baseline.fit(train, None), test)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--resperfnet", type=Path, help="ResPerfNet's measurements; without, its layers are left out")
    parser.add_argument("--only", default="", help="baselines, comma-separated; all per-layer ones by default")
    parser.add_argument("--device", default="1080ti", help="whose held-out layers are scored")
    parser.add_argument("--json", action="store_true", help="data instead of a table")
    return parser.parse_args()


def _measured(arguments: argparse.Namespace) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    device = get_device(arguments.device).slug
    frame = Dataset.open(arguments.dataset).frame
    train, test = split_by_graph(frame[(frame["source"] == JUSTUS2018) & (frame["kind"] == "layer")], _HELD_OUT, seed=0)
    if train.empty:
        raise DataError(f"{arguments.dataset} holds no layers: run `gnnperf data import justus2018` first")
    measured = {JUSTUS2018: (train, test[test["device"] == device])}
    if arguments.resperfnet:
        layers = read_layers(arguments.resperfnet, [device])
        tested = is_test_layer(layers)
        measured[RESPERFNET] = layers[~tested], layers[tested]
    return measured


def _names(only: str, sources: set[str]) -> list[str]:
    per_layer = {name: made.source for name, make in BASELINES.items() if isinstance(made := make(), LayerSumBaseline)}
    wanted = only.split(",") if only else [name for name, source in per_layer.items() if source in sources]
    for name in wanted:
        if name not in per_layer:
            raise GnnperfError(f"{name} is no per-layer baseline; there is {', '.join(per_layer)}")
        if per_layer[name] not in sources:
            raise GnnperfError(f"{name} is fitted on ResPerfNet's layers: give --resperfnet")
    return wanted


def main() -> None:
    """Fit, score, print."""
    arguments = _arguments()
    try:
        measured = _measured(arguments)
        names = _names(arguments.only, set(measured))
        if arguments.json:
            print(json.dumps({"layers": list(run(names, measured)), "published": PUBLISHED}, indent=2))
            return
        print("Held-out layers; MAPE, median error and bias in per cent\n")
        print("| baseline | layers | phase | rows | MAPE | median | bias |\n" + "| --- " * 3 + "| ---: " * 4 + "|")
        for record in run(names, measured):
            figures = " | ".join(f"{100 * record[name]:.1f}" for name in ("mape", "median", "bias"))
            cells = " | ".join(str(record[name]) for name in ("baseline", "layers", "phase", "rows"))
            print(f"| {cells} | {figures} |", flush=True)
    except GnnperfError as error:
        sys.exit(f"error: {error}")
    print("\nReported by the authors:")
    for name, figure in PUBLISHED.items():
        print(f"  {name}: {figure}")


if __name__ == "__main__":
    main()
