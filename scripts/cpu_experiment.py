"""Predict networks that were really measured here, by our network and by ResPerfNet's sum of layers.

    python scripts/cpu_experiment.py measure --device data/cpu_device.yaml -o data     # at most 28 minutes
    python scripts/cpu_experiment.py noise --device data/cpu_device.yaml -o data       # the same networks five times
    python scripts/cpu_experiment.py compare -o data --runs runs/cpu --jobs 2          # thirteen trainings

``measure`` times networks and single layers (onnxruntime for inference, PyTorch for training steps, one thread) into
``cpu_networks.csv`` and ``cpu_layers.csv``; the same command continues a run that was stopped. Keep it on one core that
nothing else uses, such as with ``taskset -c 1``; rows say whether it was quiet.

``compare`` trains our network on the measured networks, once without LeNet, AlexNet and VGG and once without each other
family, and ResPerfNet on the measured layers. Both predict the networks whose family was left out, end to end. Our
network's rows are those of the same machine, as ResPerfNet's are. The scored rows go to ``RUNS/rows.csv``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("OMP_NUM_THREADS", "1")

if TYPE_CHECKING:
    import pandas as pd

    from gnnperf.datasets.dataset import Dataset
    from gnnperf.measure.cases import Case

NETWORKS, LAYERS, NOISE = "cpu_networks.csv", "cpu_layers.csv", "cpu_noise"
NOISE_NETWORKS = (
    "lenet",
    "squeezenet1_1@64",
    "resnet18@64",
    "mobilenet_v2@96",
    "bert?layers=2&hidden=128&heads=4&seq=32",
)
NOISE_REPEATS = 5
METHODS = {
    "gnnperf": "predicted_ms",
    "stack alone": "stack_only_ms",
    "ResPerfNet": "resperfnet_ms",
    "analytic": "analytic_ms",
    "linear": "linear_ms",
    "roofline": "roofline_ms",
}
SHOWN = {"LeNet": ("lenet",), "AlexNet": ("alexnet",), "VGG16": ("vgg16", "vgg16@64", "vgg16@96")}
PHASES = ("inference", "training")


def measure(device: str, folder: Path, network_minutes: float, layer_minutes: float, layers: int) -> None:
    """Fill both tables, each for its time at most."""
    from gnnperf.measure.cases import Campaign
    from gnnperf.measure.protocol import Settings
    from gnnperf.measure.suite import layer_cases, network_cases

    folder.mkdir(parents=True, exist_ok=True)
    campaign = Campaign((), threads=1, device=os.path.relpath(device, folder))
    short = Settings(precision=0.03, fewest=5, most_s=0.5, most_warm_up_s=0.25)
    shortest = Settings(precision=0.03, fewest=5, most_s=0.1, most_warm_up_s=0.05)
    _fill(network_cases(campaign), folder / NETWORKS, short, network_minutes)
    _fill(layer_cases(campaign, layers), folder / LAYERS, shortest, layer_minutes)


def _fill(cases: Iterable[Case], table: Path, settings, minutes: float) -> None:
    from gnnperf.measure.run import measure as run

    begin, quiet, busy = time.monotonic(), 0, 0

    def after(case: Case, rows: list, problem: str) -> None:
        nonlocal quiet, busy
        quiet += sum(row.quiet for row in rows)
        busy += sum(not row.quiet for row in rows)
        if problem:
            print(f"\n{problem}", file=sys.stderr)
        if rows:
            print(f"\r{table.name}: {quiet + busy} rows, {busy} not quiet, {case.describe():<70.70}", end="")

    run(_until(cases, begin + 60 * minutes), table, settings, after=after)
    print(f"\n{table}: {quiet + busy} new rows in {(time.monotonic() - begin) / 60:.1f} minutes")


def _until(cases: Iterable[Case], end: float) -> Iterator[Case]:
    for case in cases:
        if time.monotonic() >= end:
            return
        yield case


def noise(device: str, folder: Path) -> None:
    """Measure the same networks several times and print how far the medians are apart."""
    import statistics

    from gnnperf.conditions import Phase
    from gnnperf.measure.cases import Campaign, Case
    from gnnperf.measure.models import Network
    from gnnperf.measure.protocol import Settings
    from gnnperf.measure.rows import read_rows
    from gnnperf.measure.run import measure as run

    folder.mkdir(parents=True, exist_ok=True)
    campaign = Campaign((), threads=1, device=os.path.relpath(device, folder))
    settings = Settings(precision=0.03, fewest=5, most_s=0.5, most_warm_up_s=0.25)
    tables = [folder / f"{NOISE}_{number}.csv" for number in range(1, NOISE_REPEATS + 1)]
    for table in tables:
        cases = [
            Case(Network(name), 4, phase, campaign) for name in NOISE_NETWORKS for phase in Phase if phase in PHASES
        ]
        run(cases, table, settings)
    runs = [{(row.model, row.phase): row.latency_ms for row in read_rows(table)} for table in tables]
    for key, first in runs[0].items():
        medians = [run[key] for run in runs if key in run]
        spread = (max(medians) - min(medians)) / statistics.median(medians)
        print(f"{key[0]:45} {key[1]:10} {first:9.3f} ms  largest - smallest of {len(medians)}: {spread:6.1%}")


def compare(folder: Path, runs: Path, config_path: Path, steps: int | None, jobs: int) -> None:
    """Train, predict, print the table."""
    from gnnperf.evaluation.protocols.families import family_folds
    from gnnperf.evaluation.protocols.run import run_folds
    from gnnperf.training.config import Focus, TrainingConfig

    dataset = _dataset(folder, runs / "data")
    networks = dataset.frame[dataset.frame["source"] == _source(NETWORKS)].reset_index(drop=True)
    device = str(networks["device"].iloc[0])
    config = TrainingConfig.from_yaml(config_path)
    data = config.data.model_copy(
        update={"devices": (device,), "sources": (_source(NETWORKS),), "precisions": ("fp32",)}
    )
    changes = {"focus": Focus()} | ({"steps": steps} if steps else {})
    optimisation = config.optimisation.model_copy(update=changes)
    config = config.model_copy(update={"name": "cpu", "data": data, "optimisation": optimisation})
    rows = run_folds(config, dataset, family_folds(networks, config, device), runs / "folds", jobs=jobs)
    rows["resperfnet_ms"] = resperfnet_latencies(rows, dataset, device)
    rows.to_csv(runs / "rows.csv", index=False)
    print(table(rows))


def _dataset(folder: Path, to: Path) -> Dataset:
    from gnnperf.datasets.dataset import Dataset
    from gnnperf.datasets.importing import import_measured

    dataset = Dataset.open_or_create(to)
    for name in (NETWORKS, LAYERS):
        import_measured(folder / name, dataset, processes=1)
    return dataset


def _source(table: str) -> str:
    from gnnperf.datasets.readers.measured import source_name

    return source_name(Path(table))


def resperfnet_latencies(rows: pd.DataFrame, dataset: Dataset, device: str) -> list[float]:
    """ms by ResPerfNet, fitted on the measured layers, of each row; NaN where it knows none of a network's layers.

    A tenth of the layers is left out of the fit, to see that ResPerfNet learned what it is meant to; that is printed.
    """
    import numpy as np

    from gnnperf.conditions import Phase
    from gnnperf.devices import get_device
    from gnnperf.errors import DataError

    baseline, frame = _resperfnet(device), dataset.frame
    # Its training rows are whole steps; the parts of a step would count as forward passes.
    layers = frame[(frame["source"] == baseline.source) & frame["phase"].isin(PHASES)]
    models = layers["model"].astype(str).unique()
    left_out = layers["model"].isin(np.random.default_rng(0).choice(models, len(models) // 10, replace=False))
    baseline.fit(layers[~left_out], dataset.graphs)
    unseen = layers[left_out]
    error = abs(baseline.layer_latencies(unseen) / unseen["latency_ms"].to_numpy() - 1)
    kinds = unseen["model"].astype(str).str.split("/").str[0]
    by_kind = ", ".join(f"{kind} {100 * np.nanmean(error[kinds == kind]):.1f}" for kind in sorted(set(kinds)))
    print(f"ResPerfNet on {len(unseen)} rows of layers left out, MAPE in %: {by_kind}\n")
    networks = frame[frame["source"] == _source(NETWORKS)]
    keys = dict(zip(networks["model"].astype(str), networks["graph_key"].astype(str), strict=True))
    found = []
    for row in rows.itertuples(index=False):
        graph = dataset.graphs[keys[row.model]].at_batch(int(row.batch))
        try:
            found.append(baseline.predict(graph, get_device(device), int(row.batch), Phase(row.phase)))
        except DataError:
            found.append(float("nan"))
    return found


def _resperfnet(device: str):
    from gnnperf.baselines.layer_sum import LayerSumBaseline
    from gnnperf.baselines.resperfnet import ResPerfNetBaseline

    class MeasuredResPerfNet(ResPerfNetBaseline):
        """ResPerfNet fitted on layers that were measured here; the device is a described one, which has no slug.

        As many steps as on 30,000 layers of a kind, on a twentieth of them.
        """

        epochs = 600

        def __init__(self) -> None:
            LayerSumBaseline.__init__(self, _source(LAYERS))
            self.name, self.device = "resperfnet", device

        def predict(self, graph, device, batch, phase) -> float:
            """The layers' sum."""
            return LayerSumBaseline.predict(self, graph, device, batch, phase)

    return MeasuredResPerfNet()


def table(rows: pd.DataFrame) -> str:
    """MAPE in % of every method, for the networks that everyone asks about and for every family left out."""
    lines = [f"| | rows | {' | '.join(METHODS)} |", "| --- " * (2 + len(METHODS)) + "|"]
    for phase in PHASES:
        of_phase = rows[rows["phase"] == phase]
        groups = [(label, of_phase[of_phase["model"].isin(models)]) for label, models in SHOWN.items()]
        groups += [(f"{family} (family)", group) for family, group in of_phase.groupby("family")]
        groups += [("**all families**", of_phase)]
        lines += [_line(f"{label}, {phase}", group) for label, group in groups if len(group)]
        lines.append(_line(f"**all families**, {phase}, median", of_phase, "median"))
    return "\n".join(lines)


def _line(label: str, rows: pd.DataFrame, over_rows: str = "mean") -> str:
    truth = rows["latency_ms"].to_numpy()
    figures = []
    for column in METHODS.values():
        error = abs(rows[column] / truth - 1)
        known = error[error.notna()]
        mark = f" ({len(known)} rows)" if 0 < len(known) < len(error) else ""
        figures.append(f"{_per_cent(known.agg(over_rows))}{mark}" if len(known) else "-")
    return f"| {label} | {len(rows)} | {' | '.join(figures)} |"


def _per_cent(error: float) -> str:
    """Beyond ten times the truth, digits say nothing."""
    return f"{100 * error:.1f}" if error < 10 else "> 1,000"


def main() -> None:  # noqa: D103
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("measure", "noise", "compare"):
        command = commands.add_parser(name)
        command.add_argument("-o", "--output", type=Path, default=Path("data"), help="folder of the tables")
        if name == "compare":
            command.add_argument("--runs", type=Path, default=Path("runs/cpu"))
            command.add_argument("--config", type=Path, default=Path("configs/base.yaml"))
            command.add_argument("--jobs", type=int, default=1, help="trainings at a time")
            command.add_argument("--steps", type=int, help="optimisation steps, for a trial")
        else:
            command.add_argument("--device", required=True, help="name or YAML file of the device that this machine is")
        if name == "measure":
            command.add_argument("--network-minutes", type=float, default=18)
            command.add_argument("--layer-minutes", type=float, default=10)
            command.add_argument("--layers", type=int, default=2200)
    options = parser.parse_args()
    from gnnperf.errors import GnnperfError

    try:
        if options.command == "measure":
            minutes = options.network_minutes, options.layer_minutes
            measure(options.device, options.output, *minutes, options.layers)
        elif options.command == "noise":
            noise(options.device, options.output)
        else:
            compare(options.output, options.runs, options.config, options.steps, options.jobs)
    except GnnperfError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted: the same command continues")


if __name__ == "__main__":
    main()
