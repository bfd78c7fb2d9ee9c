"""A design space as a picture: a line over one figure of the device, a heat map over two."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gnnperf.errors import GnnperfError
from gnnperf.sweep import SweepPoint

_UNITS = {"mhz": "MHz", "gb_s": "GB/s", "tflops": "TFLOP/s", "mb": "MB"}
_MOST_LABELS = 150  # cells of a heat map that have room for their number


def plot_sweep(points: Sequence[SweepPoint], title: str, path: Path) -> None:
    """Write a PNG of points that vary in one figure or two.

    Args:
        points: every combination, as :func:`gnnperf.sweep.sweep` gives them.
        title: above the picture.
        path: where to.

    Raises:
        GnnperfError: the picture cannot be written.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(points[0].values)
    figure, axes = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
    (_line if len(names) == 1 else _heat_map)(figure, axes, points, names)
    axes.set_title(title.replace("$", r"\$"), fontsize="medium")
    try:
        figure.savefig(path, dpi=130, format="png")
    except (OSError, ValueError) as error:
        raise GnnperfError(f"cannot write the plot {path}: {error}") from None
    finally:
        plt.close(figure)


def _line(figure, axes, points: Sequence[SweepPoint], names: list[str]) -> None:
    x = [point.values[names[0]] for point in points]
    axes.plot(x, [point.latency_ms for point in points], marker="o", label="predicted")
    if points[0].low_ms is not None:
        low, high = ([getattr(point, end) for point in points] for end in ("low_ms", "high_ms"))
        axes.fill_between(x, low, high, alpha=0.2, linewidth=0, label="90 % interval")
    axes.plot(x, [point.roofline_ms for point in points], linestyle=":", color="0.4", label="roofline, forward pass")
    axes.set(xlabel=_label(names[0]), ylabel="latency, ms", ylim=(0, None))
    axes.legend(frameon=False)


def _heat_map(figure, axes, points: Sequence[SweepPoint], names: list[str]) -> None:
    columns, rows = (list(dict.fromkeys(point.values[name] for point in points)) for name in names)
    grid = np.array([point.latency_ms for point in points]).reshape(len(columns), len(rows)).T
    image = axes.imshow(grid, origin="lower", aspect="auto", cmap="viridis_r")
    axes.set_xticks(*_ticks(columns))
    axes.set_yticks(*_ticks(rows))
    axes.set(xlabel=_label(names[0]), ylabel=_label(names[1]))
    figure.colorbar(image, label="latency, ms")
    if grid.size <= _MOST_LABELS:
        middle = (grid.min() + grid.max()) / 2
        for (row, column), value in np.ndenumerate(grid):
            colour = "white" if value > middle else "black"
            axes.text(column, row, f"{value:.3g}", ha="center", va="center", color=colour, fontsize="small")


def _ticks(values: list[float]) -> tuple[list[int], list[str]]:
    """At most a dozen places along an axis, and their labels."""
    places = list(range(0, len(values), -(-len(values) // 12)))
    return places, [f"{values[place]:g}" for place in places]


def _label(name: str) -> str:
    """``"bandwidth_gb_s"`` -> ``"bandwidth, GB/s"``."""
    for suffix, unit in _UNITS.items():
        if name.endswith(f"_{suffix}"):
            return f"{name.removesuffix(f'_{suffix}').replace('_', ' ')}, {unit}"
    return name
