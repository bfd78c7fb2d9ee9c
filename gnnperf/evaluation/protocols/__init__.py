"""Protocols that train a network for each fold: which rows it may see, and which it is scored on."""

from __future__ import annotations

from collections.abc import Callable

from gnnperf.evaluation.protocols.batches import batch_folds
from gnnperf.evaluation.protocols.devices import device_folds
from gnnperf.evaluation.protocols.families import family_folds
from gnnperf.evaluation.protocols.folds import Fold
from gnnperf.evaluation.protocols.inside import inside_folds
from gnnperf.evaluation.protocols.stacks import stack_folds

PROTOCOLS: dict[str, Callable[..., list[Fold]]] = {
    "families": family_folds,
    "batches": batch_folds,
    "stacks": stack_folds,
    "inside": inside_folds,
    "devices": device_folds,
}
"""Each takes the rows, a configuration and the slug of the device that is scored; ``devices`` any number of them."""
