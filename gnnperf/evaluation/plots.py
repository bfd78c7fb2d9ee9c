"""Predicted against measured, for people who would rather look than read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from gnnperf.errors import GnnperfError
from gnnperf.evaluation.metrics import summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKERS = {"inference": "o", "forward": "^", "backward": "v", "training": "s"}
_REFERENCES = {"gnnperf": "stack_only_ms", "analytic": "analytic_ms", "linear": "linear_ms", "roofline": "roofline_ms"}
_OFF_TICKS = (0.25, 0.5, 0.8, 1, 1.25, 2, 4)
_MOST_POINTS = 400  # of a family; a search space's thousands would be one blot


def scatter(rows: pd.DataFrame, path: Path) -> None:
    """Log-log scatter of ``stack_only_ms`` against ``latency_ms``: a colour a family, a marker a phase.

    Raises:
        GnnperfError: the picture cannot be written.
    """
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(6, 6))
    colours = {name: f"C{number % 10}" for number, name in enumerate(sorted(rows["family"].unique()))}
    for (family, phase), part in rows.groupby(["family", "phase"], observed=True):
        mape = summarise(part["stack_only_ms"], part["latency_ms"]).mape
        label = f"{family}, {phase}: {mape:.1%} ({len(part):,})"
        part = _thinned(part)
        axes.scatter(
            part["latency_ms"], part["stack_only_ms"], s=20, alpha=0.6, linewidths=0,
            color=colours[family], marker=_MARKERS[phase], label=label, zorder=2 + 1 / len(part),
        )  # fmt: skip
    values = rows[["latency_ms", "stack_only_ms"]].to_numpy()
    ends = [values.min() * 0.8, values.max() * 1.25]
    axes.plot(ends, ends, color="0.3", linewidth=1)
    axes.fill_between(ends, [0.9 * e for e in ends], [1.1 * e for e in ends], color="0.5", alpha=0.2, linewidth=0)
    axes.set(
        xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel="measured ms", ylabel="predicted ms", aspect="equal"
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.legend(
        loc="upper left", bbox_to_anchor=(1.02, 1), title="MAPE (rows); band: 10 %", fontsize="small",
        title_fontsize="small", frameon=False, alignment="left",
    )  # fmt: skip
    _save(figure, path)


def family_errors(rows: pd.DataFrame, path: Path) -> None:
    """Predicted over measured by family, one panel a phase: every row, median and quartiles, references beside.

    Raises:
        GnnperfError: the picture cannot be written.
    """
    plt = _pyplot()
    phases = [phase for phase in _MARKERS if (rows["phase"] == phase).any()]
    families = sorted(rows["family"].unique())
    references = {name: column for name, column in _REFERENCES.items() if rows[column].notna().any()}
    width = max(6.0, 1.5 + 0.28 * len(references) * len(families))
    figure, panels = plt.subplots(
        len(phases), 1, figsize=(width, 0.6 + 2.3 * len(phases)), layout="constrained", sharex=True, squeeze=False
    )
    random = np.random.default_rng(0)
    limit = np.log(_OFF_TICKS[-1])
    for axes, phase in zip(panels[:, 0], phases, strict=True):
        axes.axhspan(np.log(0.9), np.log(1.1), color="0.5", alpha=0.2, linewidth=0)
        axes.axhline(0, color="0.3", linewidth=1)
        for number, column in enumerate(references.values()):
            for place, family in enumerate(families):
                part = rows[(rows["phase"] == phase) & (rows["family"] == family) & rows[column].notna()]
                if part.empty:
                    continue
                # What is further off than the panel is drawn at its edge: it stays in sight and squeezes nothing.
                off = np.clip(np.log(part[column] / part["latency_ms"]), -limit, limit).to_numpy()
                x = place + (number - (len(references) - 1) / 2) * 0.8 / len(references)
                shown = _thinned(pd.DataFrame({"off": off}))["off"]
                spread = random.uniform(-0.05, 0.05, len(shown))
                axes.scatter(x + spread, shown, s=7, alpha=0.35, linewidths=0, color=f"C{number}")
                low, middle, high = np.percentile(off, [25, 50, 75])
                axes.vlines(x, low, high, color=f"C{number}", linewidth=3, alpha=0.8)
                axes.plot(x, middle, marker="_", markersize=11, markeredgewidth=2, color=f"C{number}")
        axes.set(
            ylim=(-1.05 * limit, 1.05 * limit), yticks=np.log(_OFF_TICKS), ylabel="predicted / measured",
            xlim=(-0.6, len(families) - 0.4),
        )  # fmt: skip
        axes.set_yticklabels([f"{tick:g}" for tick in _OFF_TICKS])
        axes.set_title(phase, loc="left", fontsize="medium")
        for place in range(1, len(families)):
            axes.axvline(place - 0.5, color="0.85", linewidth=0.8)
    panels[-1, 0].set_xticks(range(len(families)), families, rotation=0 if len(families) < 6 else 20)
    handles = [plt.Line2D([], [], color=f"C{n}", marker="o", linewidth=3, label=name) for n, name in
               enumerate(references)]  # fmt: skip
    figure.legend(
        handles=handles, loc="outside upper center", ncols=len(handles), frameon=False, fontsize="small",
        title="dots: rows, at the edge those beyond it; bars: quartiles and median; band: 10 %", title_fontsize="small",
    )  # fmt: skip
    _save(figure, path)


def _pyplot():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _thinned(rows: pd.DataFrame) -> pd.DataFrame:
    return rows if len(rows) <= _MOST_POINTS else rows.sample(_MOST_POINTS, random_state=0)


def _save(figure: Figure, path: Path) -> None:
    import matplotlib.pyplot as plt

    try:
        figure.savefig(path, dpi=130, bbox_inches="tight")
    except (OSError, ValueError) as error:
        raise GnnperfError(f"cannot write the plot {path}: {error}") from None
    finally:
        plt.close(figure)
