"""Which rows a configuration trains on, and which it keeps out to be scored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gnnperf import zoo
from gnnperf.datasets.splits import SEARCH_SPACES, split_by_family, split_by_graph
from gnnperf.devices import DeviceKind, get_device
from gnnperf.errors import TrainingError
from gnnperf.training.config import DataConfig


@dataclass
class Split:
    """Rows by what they are for.

    Attributes:
        train: rows that the network is fitted on, under an open licence each.
        held_out: rows of the families held out, those that may only be evaluated on among them.
        in_space: rows of search-space graphs held out.
    """

    train: pd.DataFrame
    held_out: pd.DataFrame
    in_space: pd.DataFrame


def split_rows(frame: pd.DataFrame, config: DataConfig, seed: int) -> Split:
    """Rows that the configuration admits, split by family, and inside search spaces by graph.

    Raises:
        TrainingError: a name in the configuration is unknown, or nothing is left to train on.
    """
    # A misspelt family would be trained on in silence, and the figures would be worth nothing.
    families = {zoo.describe(spec).family for spec in (*zoo.names(), *zoo.EXAMPLES)}
    _refuse_unknown("held_out_families", config.held_out_families, families)
    for name, column in (("devices", "device"), ("sources", "source"), ("precisions", "precision")):
        wanted = getattr(config, name)
        if wanted:
            _refuse_unknown(name, wanted, frame[column].astype(str).unique())
            frame = frame[frame[column].isin(list(wanted))]
    frame, held_out = split_by_family(frame, config.held_out_families)
    frame = frame[(frame["use"] == "train") & ~is_anomalous(frame)]
    if not config.devices:
        frame = frame[frame["device"].map(_is_gpu).astype(bool)]
    space = frame["family"].isin(SEARCH_SPACES)
    kept, in_space = split_by_graph(frame[space], 1 - config.search_space_share, seed)
    layers = frame[frame["kind"] == "layer"]
    if len(layers) > config.layer_rows:
        chosen = np.random.default_rng(seed).choice(len(layers), config.layer_rows, replace=False)
        layers = layers.iloc[np.sort(chosen)]
    models = frame[~space & (frame["kind"] == "model")]
    if config.source_networks:
        models = _limited(models, config.source_networks, seed)
    train = pd.concat([models, kept, layers], ignore_index=True)
    if train.empty:
        raise TrainingError("the configuration leaves no rows to train on: import more sources or admit more of them")
    return Split(train, held_out, in_space)


def _limited(models: pd.DataFrame, most: int, seed: int) -> pd.DataFrame:
    """All rows of at most ``most`` networks of each source."""
    names = models[["source", "model"]].astype(str)
    pairs = names.drop_duplicates().sort_values(["source", "model"])
    chosen = pairs.sample(frac=1, random_state=seed).groupby("source").head(most)
    return models[pd.MultiIndex.from_frame(names).isin(pd.MultiIndex.from_frame(chosen))]


def _is_gpu(slug: str) -> bool:
    return get_device(slug).kind == DeviceKind.GPU


def is_anomalous(frame: pd.DataFrame) -> np.ndarray:
    """``[rows]`` whether no property of the network or device explains a row.

    dlinfbench's PyTorch 0.1 on its GTX 1080 takes four times as long as on a GTX 1080 Ti and as every other framework
    on that GTX 1080 (ResNet-50 at batch 64: 424 ms against 107 and 163), as if it had run without cuDNN.
    """
    return (
        (frame["source"] == "dlinfbench") & (frame["device"] == "1080") & (frame["stack"] == "pytorch-0.1")
    ).to_numpy()


def _refuse_unknown(name: str, wanted: Iterable[str], known: Iterable[str]) -> None:
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        raise TrainingError(
            f"data.{name} of the configuration names {', '.join(unknown)}, of which there is nothing; "
            f"there is {', '.join(sorted(known)) or 'no row at all'}"
        )
