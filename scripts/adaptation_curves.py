"""What 0, 3, 10, 30 and 100 measurements on a device that was never trained on are worth, by how they are chosen.

gnnperf evaluate devices -d 2080ti -d titan-rtx -d titan-xp --data DATASET
python scripts/adaptation_curves.py DATASET --run runs/evaluate/devices --plot docs/adaptation.png

Devices are those of the HELP data that a fold left out (its predictor is used for them), and CPUs, which no predictor
is trained on. Networks are graphs of NAS-Bench-201 and FBNet that the fold's training never saw on any device; some
are the pool to choose from, the others are scored. Each draw has a pool of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from rich.progress import track

from gnnperf.adaptation.choice import Choice
from gnnperf.adaptation.components import Components
from gnnperf.adaptation.fit import fit_scales
from gnnperf.adaptation.suggest import choose
from gnnperf.datasets.dataset import Dataset
from gnnperf.devices import DeviceKind, get_device
from gnnperf.errors import GnnperfError
from gnnperf.evaluation.space_references import row_components
from gnnperf.predictor import DESCRIPTION_FILE, Predictor
from gnnperf.training.predictor_files import read_config
from gnnperf.training.split import split_rows

BUDGETS = (0, 3, 10, 30, 100)
SPACES = ("nasbench201", "fbnet")
HELP_RANK_CORRELATION = 0.932  # Lee et al. 2021, NAS-Bench-201, mean over six unseen devices, 10 measurements


class Task(NamedTuple):
    """A device, a search space and a batch: HELP counts each batch as a device of its own."""

    device: str
    space: str
    batch: int
    parts: Components
    latency_ms: np.ndarray


def tasks(dataset: Dataset, run: Path, networks: int) -> Iterator[Task]:
    """Every task, its networks' predictions taken apart.

    Raises:
        GnnperfError: there is no fold of a device of the HELP data.
    """
    help_rows = dataset.frame[(dataset.frame["source"] == "help") & dataset.frame["family"].isin(SPACES)]
    measured = set(help_rows["device"].astype(str))
    folders = {path.parent.name: path.parent for path in sorted(run.glob(f"*/{DESCRIPTION_FILE}"))}
    folders = {slug: folder for slug, folder in folders.items() if slug in measured}
    if not folders:
        raise GnnperfError(f"{run} holds no fold that leaves out one of {', '.join(sorted(measured))}")
    cpus = sorted(slug for slug in measured if get_device(slug).kind == DeviceKind.CPU)
    for slug, folder in [*folders.items(), *((slug, next(iter(folders.values()))) for slug in cpus)]:
        predictor, config = Predictor.load(folder), read_config(folder)
        if slug in predictor.devices:
            raise GnnperfError(f"{folder} was trained on {slug}")
        keys = split_rows(dataset.frame, config.data, config.seed).in_space["graph_key"].astype(str).unique()
        rows = help_rows[(help_rows["device"] == slug) & help_rows["graph_key"].isin(keys)]
        for (space, batch), part in rows.groupby(["family", "batch"], observed=True):
            part = part.sort_values("model").sample(min(networks, len(part)), random_state=0)
            parts = row_components(part, dataset, predictor)
            yield Task(slug, str(space), int(batch), parts, part["latency_ms"].to_numpy())


def curves(task: Task, draws: int, scored: int) -> list[dict]:
    """A record for each choice, budget and draw: error and Spearman's rank correlation on networks not in the pool."""
    from scipy.stats import spearmanr

    records = []
    for draw in range(draws):
        order = np.random.default_rng(draw).permutation(len(task.latency_ms))
        test, pool = order[:scored], order[scored:]
        for choice in Choice:
            for budget in BUDGETS:
                chosen = pool[choose(task.parts[pool], budget, choice, draw)] if budget else pool[:0]
                scales = fit_scales(task.parts[chosen], task.latency_ms[chosen])
                predicted_ms, truth_ms = task.parts[test].scaled(scales)[0], task.latency_ms[test]
                records.append(
                    {"device": task.device, "kind": str(get_device(task.device).kind), "space": task.space,
                     "batch": task.batch, "choice": str(choice),
                     "budget": budget, "draw": draw, "mape": float(np.abs(predicted_ms / truth_ms - 1).mean()),
                     "spearman": float(spearmanr(predicted_ms, truth_ms).statistic)}
                )  # fmt: skip
    return records


def table(records: pd.DataFrame, metric: str, scale: float, digits: int) -> str:
    """Markdown: budgets as columns; a line for each device, space and batch, and means by space and kind of device.

    Mean over draws, and between draws the standard deviation. Single lines are of networks that KMeans chose.

    Args:
        records: as :func:`curves` gives them.
        metric: ``mape`` or ``spearman``.
        scale: factor on it.
        digits: behind the point.
    """
    lines = [f"| {metric} | {' | '.join(map(str, BUDGETS))} |", "| --- |" + " --- |" * len(BUDGETS)]

    def line(title: str, part: pd.DataFrame) -> str:
        found = []
        for budget in BUDGETS:
            values = scale * part[part["budget"] == budget].groupby("draw")[metric].mean()
            found.append(f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f}")
        return f"| {title} | {' | '.join(found)} |"

    by_kmeans = records[records["choice"] == str(Choice.KMEANS)]
    for (device, space, batch), part in by_kmeans.groupby(["device", "space", "batch"], sort=False):
        lines.append(line(f"{device}, {space}, batch {batch}", part))
    for (kind, space, choice), part in records.groupby(["kind", "space", "choice"], sort=False):
        lines.append(line(f"**{kind.upper()}s, {space}, {choice}**", part))
    return "\n".join(lines)


def plot(records: pd.DataFrame, path: Path) -> None:
    """Error and rank correlation against the number of measurements; grey: each device and batch, by KMeans."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator

    groups = list(records.groupby(["kind", "space"], sort=False))
    size = (1 + 3 * len(groups), 6)
    figure, panels = plt.subplots(2, len(groups), figsize=size, sharex=True, layout="constrained", squeeze=False)
    places = range(len(BUDGETS))
    for column, ((kind, space), part) in enumerate(groups):
        for row, (metric, scale) in enumerate((("mape", 100), ("spearman", 1))):
            axes = panels[row, column]
            for _, task in part[part["choice"] == str(Choice.KMEANS)].groupby(["device", "batch"]):
                axes.plot(places, scale * task.groupby("budget")[metric].mean(), color="0.75", linewidth=0.8)
            for number, choice in enumerate(Choice):
                means = part[part["choice"] == str(choice)].groupby(["draw", "budget"])[metric].mean().unstack() * scale
                axes.plot(places, means.mean(), marker="o", color=f"C{number}", label=f"mean, {choice}")
                axes.fill_between(places, means.min(), means.max(), color=f"C{number}", alpha=0.25, linewidth=0)
            axes.set_xticks(places, BUDGETS)
        panels[0, column].set(yscale="log", title=f"{kind.upper()}s, {space}")
        panels[0, column].yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        panels[0, column].yaxis.set_major_formatter("{x:g}")
        panels[0, column].yaxis.set_minor_formatter("{x:g}")
        panels[1, column].set_xlabel("measurements")
        if space == "nasbench201":
            star = {"marker": "*", "markersize": 11, "color": "k", "linestyle": "none"}
            panels[1, column].plot(2, HELP_RANK_CORRELATION, label="HELP, GPUs and others", **star)
        panels[1, column].legend(frameon=False, fontsize="small")
    panels[0, 0].set_ylabel("MAPE, %")
    panels[1, 0].set_ylabel("Spearman's rank correlation")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main() -> None:  # noqa: D103
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path, help="folder that `gnnperf data import` filled")
    parser.add_argument("--run", type=Path, default=Path("runs/evaluate/devices"), help="folds that left devices out")
    parser.add_argument("--networks", type=int, default=400, help="of each device, space and batch")
    parser.add_argument("--scored", type=int, default=200, help="of these, the rest is the pool")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write every record")
    parser.add_argument("--plot", type=Path, help="write a PNG")
    arguments = parser.parse_args()
    if arguments.networks - arguments.scored < max(BUDGETS):
        parser.error(f"--networks has to exceed --scored by {max(BUDGETS)} at least")
    try:
        dataset = Dataset.open(arguments.dataset)
        found = tasks(dataset, arguments.run, arguments.networks)
        records = [
            record for task in track(found, "tasks") for record in curves(task, arguments.draws, arguments.scored)
        ]
    except GnnperfError as error:
        sys.exit(f"error: {error}")
    if arguments.json:
        arguments.json.write_text(json.dumps(records))
    frame = pd.DataFrame(records)
    print(table(frame, "mape", 100, 1), table(frame, "spearman", 1, 3), sep="\n\n")
    if arguments.plot:
        plot(frame, arguments.plot)


if __name__ == "__main__":
    main()
