"""Predicted over measured for every method and network, one panel for each truth and phase."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from gnnperf.errors import GnnperfError
from gnnperf.evaluation.benchmark.markdown import label, title
from gnnperf.evaluation.benchmark.networks import table_groups
from gnnperf.evaluation.benchmark.result import Benchmark
from gnnperf.evaluation.metrics import summarise

_TICKS = (0.1, 0.25, 0.5, 0.8, 1, 1.25, 2, 4, 10)
_TOGETHER = ("all three", "all others")  # their rows are in other groups' places already


def plot_benchmark(result: Benchmark, path: Path) -> None:
    """Every row as a dot, medians as bars; beyond a factor of ten at the edge.

    Raises:
        GnnperfError: the picture cannot be written.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parts = result.parts()
    most = max((len(result.predicting(rows)) for _, _, rows in parts), default=1)
    figure, panels = plt.subplots(
        len(parts), 1, figsize=(max(8.0, 0.75 * most), 0.8 + 2.8 * len(parts)), layout="constrained", squeeze=False
    )
    limit = np.log(_TICKS[-1])
    colours: dict[str, str] = {}
    for axes, (truth, phase, rows) in zip(panels[:, 0], parts, strict=True):
        groups = {name: part for name, part in table_groups(rows).items() if name not in _TOGETHER}
        for name in groups:
            colours.setdefault(name, f"C{len(colours) % 10}")
        methods = result.predicting(rows)
        for place, method in enumerate(methods):
            for number, (name, part) in enumerate(groups.items()):
                part = part[part[method.name].notna()]
                if part.empty:
                    continue
                off = np.clip(np.log(part[method.name] / part["latency_ms"]), -limit, limit)
                x = place + (number - (len(groups) - 1) / 2) * 0.8 / len(groups)
                axes.scatter(np.full(len(off), x), off, s=9, alpha=0.5, linewidths=0, color=colours[name])
                axes.plot(x, np.median(off), marker="_", markersize=9, markeredgewidth=2, color=colours[name])
        names = [f"{label(method.name, method.made_for, truth)}\n{_mape(rows, method.name)}" for method in methods]
        axes.set_xticks(range(len(methods)), names, fontsize="x-small", rotation=20)
        axes.set(ylim=(-1.05 * limit, 1.05 * limit), yticks=np.log(_TICKS), ylabel="predicted / measured")
        axes.set_yticklabels([f"{tick:g}" for tick in _TICKS], fontsize="x-small")
        axes.set_title(title(truth, phase, rows), loc="left", fontsize="small")
        axes.axhspan(np.log(0.9), np.log(1.1), color="0.5", alpha=0.2, linewidth=0)
        axes.axhline(0, color="0.3", linewidth=1)
        for place in range(1, len(methods)):
            axes.axvline(place - 0.5, color="0.85", linewidth=0.8)
    handles = [plt.Line2D([], [], color=colour, marker="o", linewidth=0, label=name) for name, colour in
               colours.items()]  # fmt: skip
    figure.legend(
        handles=handles, loc="outside upper center", ncols=min(5, max(1, len(handles))), frameon=False,
        fontsize="small", title="dots: rows; bars: medians; band: 10 %; below a method its MAPE",
        title_fontsize="small",
    )  # fmt: skip
    try:
        figure.savefig(path, dpi=130)
    except (OSError, ValueError) as error:
        raise GnnperfError(f"cannot write the plot {path}: {error}") from None
    finally:
        plt.close(figure)


def _mape(rows: pd.DataFrame, method: str) -> str:
    known = rows[rows[method].notna()]
    mape = summarise(known[method], known["latency_ms"]).mape
    return f"{mape:.0%}" if mape < 10 else "> 1000%"
