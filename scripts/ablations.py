"""Which parts of the network earn their place: leave-one-family-out errors of variants of one configuration.

    python scripts/ablations.py --data gnnperf-data                    # all variants; hours on one core
    python scripts/ablations.py --data gnnperf-data --only base depth-0

LeNet, AlexNet and VGG are neither trained on nor scored: designs are chosen by the other families of the GTX 1080 Ti.
Variants are trained for 500 steps on FP32 rows of the sources that have a GTX 1080 Ti or its layers, which is most of
what counts there and a third of the time. Finished folds are kept in --output, so that a stopped run continues. Writes
a CSV and prints a Markdown table.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.splits import SEARCH_SPACES
from gnnperf.evaluation.protocols.families import HEADLINE, family_folds
from gnnperf.evaluation.protocols.run import run_folds
from gnnperf.training.config import TrainingConfig

DEVICE = "1080ti"
STEPS = 500
SOURCES = ("help", "justus2018", "dlinfbench", "pytorch_gpu_benchmark", "cnn_benchmarks", "lambda_tensorflow",
           "whole_models")  # fmt: skip

VARIANTS: dict[str, tuple[str, dict]] = {
    "base": ("as in the configuration", {}),
    "base-seed-1": ("another seed", {"seed": 1}),
    "base-seed-2": ("another seed", {"seed": 2}),
    "pooled": ("pooled readout", {"network.readout": "pooled"}),
    "depth-0": ("no message passing", {"network.depth": 0}),
    "depth-1": ("1 GraphSAGE block", {"network.depth": 1}),
    "depth-3": ("3 blocks", {"network.depth": 3}),
    "depth-4": ("4 blocks", {"network.depth": 4}),
    "context-unbounded": ("context within exp(+-3), hardly pulled to zero",
                          {"network.context_bound": 3.0, "optimisation.correction_weight": 0.001}),
    "no-edge-features": ("messages do not see tensor sizes", {"network.edge_features": False}),
    "width-64": ("width 64", {"network.width": 64, "network.local_width": 64}),
    "roofline-kernels": ("no tiles, waves, inner dimension, Winograd", {"network.tiled_kernels": False}),
    "no-local": ("no correction of single products", {"network.local_bound": 1e-3}),
    "no-launches": ("no host time", {"network.launches": False}),
    "no-effects": ("no effects of stacks, devices, campaigns", {"optimisation.effect_weight": 1.0,
                                                                "optimisation.network_deviation": 2.0}),
    "no-network-effects": ("no random effects of networks", {"optimisation.network_deviation": 1e-3}),
    "free-constants": ("analytic constants without a prior", {"optimisation.physics_weight": 0.0}),
    "weak-pull": ("corrections pulled to zero 20 times less", {"optimisation.correction_weight": 0.05}),
    "no-layers": ("no single-layer rows", {"data.layer_rows": 0, "optimisation.batch.layer": 0}),
    "more-layers": ("single-layer rows weigh 0.3", {"optimisation.loss_weight.layer": 0.3}),
    "no-nas": ("no search-space rows", {"optimisation.batch.search_space": 0}),
    "more-nas": ("search-space rows weigh 0.3", {"optimisation.loss_weight.search_space": 0.3}),
    "no-focus": ("all GPUs count the same from first to last", {"optimisation.focus.weight": 1.0}),
    "focus-throughout": ("other GPUs hardly count, from first to last", {"optimisation.focus.start": 0.0}),
    "weak-focus": ("the GTX 1080 Ti counts 8 times, from first to last", {"optimisation.focus.start": 0.0,
                                                                          "optimisation.focus.weight": 8.0}),
    "only-1080ti": ("no other GPU", {"data.devices": (DEVICE,), "data.sources": ()}),
    "all-sources": ("with timm, NeuSight and FP16 rows", {"data.sources": (), "data.precisions": ("fp32", "fp16")}),
    "maple": ("MAPLE loss", {"optimisation.loss": "maple"}),
    "longer": ("three times the steps", {"optimisation.steps": 3}),
}  # fmt: skip


def narrowed(config: TrainingConfig) -> TrainingConfig:
    """The configuration with fewer rows and steps."""
    return config.model_copy(
        update={
            "data": config.data.model_copy(update={"precisions": ("fp32",), "sources": SOURCES}),
            "optimisation": config.optimisation.scoring_only(DEVICE).model_copy(update={"steps": STEPS}),
        }
    )


def variant(config: TrainingConfig, name: str) -> TrainingConfig:
    """The configuration with the variant's values; steps are a multiple of its own."""
    values = config.model_dump()
    for path, value in VARIANTS[name][1].items():
        *sections, key = path.split(".")
        section = values
        for part in sections:
            section = section[part]
        section[key] = section[key] * value if key == "steps" else value
    return TrainingConfig.model_validate(values)


def summary(rows: pd.DataFrame) -> dict[str, float]:
    """MAPE in per cent of FP32 predictions that know the stack alone: over rows, and with equal weight for families."""
    rows = rows[rows["precision"] == "fp32"]
    rows = rows.assign(ape=100 * (rows["stack_only_ms"] / rows["latency_ms"] - 1).abs())
    figures = {}
    for phase in ("inference", "training"):
        part = rows[rows["phase"] == phase]
        figures |= {f"{phase}": part["ape"].mean(), f"{phase}_families": part.groupby("family")["ape"].mean().mean()}
    return figures


def main() -> None:  # noqa: D103
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder that `gnnperf data import` filled")
    parser.add_argument("--config", type=Path, default=Path("configs/base.yaml"))
    parser.add_argument("--output", type=Path, default=Path("runs/ablations"))
    parser.add_argument("--csv", type=Path, default=Path("runs/ablations/ablations.csv"))
    parser.add_argument("--only", nargs="*", choices=VARIANTS, metavar="VARIANT", help=", ".join(VARIANTS))
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()

    dataset = Dataset.open(arguments.data)
    base = narrowed(TrainingConfig.from_yaml(arguments.config))
    table = []
    for name in arguments.only or VARIANTS:
        config = variant(base, name)
        folds = [
            fold for fold in family_folds(dataset.frame, config, DEVICE) if fold.name not in (HEADLINE, *SEARCH_SPACES)
        ]
        rows = run_folds(config, dataset, folds, arguments.output / name, jobs=arguments.jobs)
        table.append({"variant": name, "what": VARIANTS[name][0]} | summary(rows))
        print(" ".join(f"{key} {value:.1f}" if isinstance(value, float) else value for key, value in table[-1].items()),
              flush=True)  # fmt: skip
        pd.DataFrame(table).to_csv(arguments.csv, index=False, float_format="%.2f")

    print("\n| variant | inference | by family | training step | by family |\n| --- | --- | --- | --- | --- |")
    for row in table:
        figures = " | ".join(f"{value:.1f}" for value in row.values() if isinstance(value, float))
        print(f"| {row['what']} | {figures} |")


if __name__ == "__main__":
    main()
