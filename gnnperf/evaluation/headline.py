"""The headline protocol: LeNet, AlexNet and VGG, every truth that was published for one device."""

from __future__ import annotations

from pathlib import Path

from gnnperf.datasets.importing import published_dataset
from gnnperf.datasets.splits import HEADLINE_FAMILIES
from gnnperf.errors import DataError
from gnnperf.evaluation.evaluation import Evaluation
from gnnperf.evaluation.protocols.folds import whole_models
from gnnperf.evaluation.scoring import score_rows
from gnnperf.predictor import Predictor
from gnnperf.training.config import DataConfig
from gnnperf.training.split import split_rows


def headline(predictor: Path | None, device: str) -> Evaluation:
    """Score a predictor on data/published.csv, which ships with gnnperf; nothing is trained.

    Args:
        predictor: folder of one that was trained without the headline families, as every shipped one is; None: the
            shipped one.
        device: slug.

    Raises:
        DataError: there are no such rows on the device.
        GnnperfError: the folder holds no valid predictor.
    """
    loaded = Predictor.load(predictor)
    dataset = published_dataset()
    precisions = tuple(dataset.frame["precision"].cat.categories)
    split = split_rows(dataset.frame, DataConfig(held_out_families=HEADLINE_FAMILIES, precisions=precisions), seed=0)
    test = whole_models(split.held_out, device)
    if test.empty:
        raise DataError(f"no headline truth on {device} in data/published.csv")
    rows = score_rows("headline", test, split.train, dataset, loaded)
    return Evaluation("headline", device, "shipped" if predictor is None else predictor.name, 0, rows)
