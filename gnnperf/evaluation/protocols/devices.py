"""Leave one device out: what the figures are on a GPU that nobody measured, with and without its generation."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from gnnperf.datasets.splits import sample_models, split_by_device
from gnnperf.devices import Device, get_device
from gnnperf.evaluation.protocols.folds import Fold, refuse_no_folds, whole_models, without_families
from gnnperf.training.config import TrainingConfig

GENERATION = "generation-"
"""What the names of folds that leave out a whole architecture begin with; the others are named by their device."""

_NETWORKS = 100  # of a search space that are scored, on each of a dozen devices


def device_folds(frame: pd.DataFrame, config: TrainingConfig, *devices: str) -> list[Fold]:
    """A fold for each device whose kin are trained on, and one for each generation, which is left out as a whole.

    A fold's devices are kept out of training in every row, single layers too, so that neither an effect of theirs nor
    a campaign on them is learned: they are predicted like a device that a file describes. Kin are other devices of the
    same architecture on which whole networks were measured. Boards that carry the same chip at the same clock (V100
    PCIe with 16 and 32 GB) are left out together, in one fold. Of each search space 100 networks are scored. No device
    is in focus at the end of training, as the one that is predicted is none of those trained on.

    Args:
        frame: rows of the schema.
        config: of every fold's training.
        devices: slugs of those that are scored; none given: all on which whole networks were measured.

    Raises:
        DataError: no network was measured on them.
        TrainingError: see :func:`gnnperf.training.split.split_rows`.
    """
    names, split = without_families(frame, config)
    known = _devices(split.train)
    measured = _devices(split.train[split.train["kind"] == "model"])
    scored = [device for device in measured if not devices or device.slug in devices]

    def fold(name: str, left_out: Iterable[Device], tested: Iterable[Device]) -> Fold:
        train, held = split_by_device(split.train, [device.slug for device in left_out])
        rows = [sample_models(whole_models(held, device.slug), _NETWORKS, config.seed) for device in tested]
        return Fold(name, names, train, pd.concat(rows), focus=False)

    folds = []
    for device in scored:
        same = [other for other in known if _same_chip(other, device)]
        kin = [other for other in measured if other.architecture == device.architecture and other not in same]
        tested = [other for other in same if other in scored]
        if kin and tested[0] == device:
            folds.append(fold(device.slug, same, tested))
    for architecture in sorted({device.architecture for device in scored}):
        generation = [other for other in known if other.architecture == architecture]
        name = GENERATION + architecture.lower().replace(" ", "-")
        folds.append(fold(name, generation, [other for other in generation if other in scored]))
    return refuse_no_folds([fold for fold in folds if len(fold.train)], "networks", ", ".join(devices) or "any device")


def _devices(rows: pd.DataFrame) -> list[Device]:
    return [get_device(slug) for slug in sorted(rows["device"].astype(str).unique())]


def _same_chip(device: Device, other: Device) -> bool:
    figures = ("architecture", "sm_count", "cores", "clock_mhz")
    return all(getattr(device, name) == getattr(other, name) for name in figures)
