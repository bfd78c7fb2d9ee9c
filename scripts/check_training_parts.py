"""Forward pass, backward pass and update, each against rows that tell them apart.

    python scripts/check_training_parts.py DATASET [--predictor FOLDER] [--folds runs/evaluate/families] [--json]

DATASET is a folder that `gnnperf data import` wrote, the predictor one that was trained on it. The predictor was
trained on the passes of ResNets and GoogLeNet: their figures are "in sample" unless --folds names a finished run of
`gnnperf evaluate families`, whose folds left their families out. AlexNet, VGG and the layers shown were not trained on.
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
from gnnperf.errors import GnnperfError
from gnnperf.evaluation.training_parts import (
    accuracy,
    backward_ratios,
    score_layers,
    score_passes,
    score_steps,
    step_costs,
    update_order,
)
from gnnperf.resources import resource


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--predictor", type=Path, default=resource("pretrained/base"), help="default: the shipped one")
    parser.add_argument("--folds", type=Path, help="folder of a finished `gnnperf evaluate families`")
    parser.add_argument("--device", default="1080ti", help="of the single layers")
    parser.add_argument("--json", action="store_true", help="data instead of tables")
    return parser.parse_args()


def _check(arguments: argparse.Namespace) -> dict:
    dataset = Dataset.open(arguments.dataset)
    passes = score_passes(dataset, arguments.predictor, arguments.folds)
    layers = score_layers(dataset, arguments.predictor, get_device(arguments.device).slug)
    headline = passes["family"].isin(HEADLINE_FAMILIES)
    return {
        "passes": accuracy(passes[~headline], ["sample", "family", "phase"]),
        "layers": accuracy(layers, ["sample", "layer", "optimizer"]),
        "updates": update_order(layers),
        "steps": step_costs(score_steps(dataset, arguments.predictor)).to_dict("records"),
        "headline_passes": accuracy(passes[headline], ["sample", "device", "family", "phase"]),
        "backward_over_forward": backward_ratios(passes).to_dict("records"),
    }


def _table(title: str, records: list[dict]) -> None:
    print(f"\n{title}\n")
    if not records:
        print("none")
        return
    print("| " + " | ".join(records[0]) + " |")
    print("|" + " --- |" * len(records[0]))
    for record in records:
        print("| " + " | ".join(f"{value:.3g}" if isinstance(value, float) else str(value) for value in record.values())
              + " |")  # fmt: skip


def _print(found: dict) -> None:
    _table("Passes of whole networks, Torch7 (errors are fractions)", found["passes"])
    _table("Single layers, TensorFlow 1; none: forward pass", found["layers"])
    updates = [
        {"optimizer": name, "measured": updates_measured, "predicted": found["updates"]["predicted"][name]}
        for name, updates_measured in found["updates"]["measured"].items()
    ]
    tau = found["updates"]["kendall_tau"]
    _table(f"Passes over a dense layer's weights, by regression; rank correlation of the updates {tau:.2f}", updates)
    _table("Steps of whole networks, TensorFlow 1", found["steps"])
    ratios = pd.DataFrame(found["backward_over_forward"])
    if len(ratios):
        means = ratios.groupby(["family", "model"])[["measured", "predicted"]].mean().reset_index()
        _table("Backward over forward pass, mean over devices", means.to_dict("records"))
    _table("Passes of AlexNet and VGG, reported only", found["headline_passes"])


def main() -> None:
    """Check and print."""
    arguments = _arguments()
    try:
        found = _check(arguments)
    except GnnperfError as error:
        sys.exit(f"error: {error}")
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        _print(found)


if __name__ == "__main__":
    main()
