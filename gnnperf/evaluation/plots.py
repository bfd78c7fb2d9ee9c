"""Predicted against measured, for people who would rather look than read."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from gnnperf.errors import GnnperfError
from gnnperf.evaluation.metrics import summarise


def scatter(rows: pd.DataFrame, path: Path) -> None:
    """Log-log scatter of ``predicted_ms`` against ``latency_ms``: a colour a family, a marker a phase.

    Raises:
        GnnperfError: the picture cannot be written.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.5, 6.5), layout="constrained")
    markers = dict(zip(("inference", "forward", "backward", "training"), "o^vs", strict=True))
    colours = {name: f"C{i}" for i, name in enumerate(sorted(rows["family"].astype(str).unique()))}
    for (family, phase), part in rows.groupby(["family", "phase"], observed=True):
        mape = summarise(part["predicted_ms"], part["latency_ms"]).mape
        axes.scatter(
            part["latency_ms"], part["predicted_ms"], s=22, alpha=0.75, linewidths=0,
            color=colours[family], marker=markers[phase], label=f"{family}, {phase}: {mape:.1%} ({len(part)})",
        )  # fmt: skip
    values = rows[["latency_ms", "predicted_ms"]].to_numpy()
    ends = [values.min() * 0.8, values.max() * 1.25]
    axes.plot(ends, ends, color="0.3", linewidth=1)
    axes.fill_between(ends, [0.9 * e for e in ends], [1.1 * e for e in ends], color="0.5", alpha=0.2, linewidth=0)
    axes.set(
        xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel="measured ms", ylabel="predicted ms", aspect="equal"
    )
    axes.legend(title="MAPE (rows); band: 10 %", fontsize="small", title_fontsize="small", frameon=False)
    try:
        figure.savefig(path, dpi=130)
    except (OSError, ValueError) as error:
        raise GnnperfError(f"cannot write the plot {path}: {error}") from None
    finally:
        plt.close(figure)
