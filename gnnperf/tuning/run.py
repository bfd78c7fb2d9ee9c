"""A whole search: trials, the best of them again under other seeds, results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from optuna import Study
from optuna.pruners import NopPruner
from rich.console import Console

from gnnperf.datasets.dataset import Dataset
from gnnperf.training.config import TrainingConfig
from gnnperf.tuning.confirmation import Confirmed, candidates, confirmed, enqueue
from gnnperf.tuning.folds import narrowed, validation_folds
from gnnperf.tuning.objective import Objective
from gnnperf.tuning.options import Aim, PrunerName
from gnnperf.tuning.progress import StudyBar
from gnnperf.tuning.results import write_results
from gnnperf.tuning.space import outside, values_of
from gnnperf.tuning.storage import open_storage
from gnnperf.tuning.study import make_pruner, open_study, study_identity
from gnnperf.tuning.worker import work

_OTHER_SEEDS = 2  # that a confirmed trial is trained under


@dataclass(frozen=True)
class StudyOptions:
    """What a study is; every process that shares it has to say the same.

    Attributes:
        name: of the study; that of the winner is NAME-tuned.
        storage: see :func:`gnnperf.tuning.storage.open_storage`.
        device: slug of whose rows trials are judged by.
        aim: what is minimised.
        inference_weight: of inference in the error, against training steps.
        steps: of the training of a fold.
        all_rows: train on all rows of the configuration instead of :func:`gnnperf.tuning.folds.narrowed` ones.
        seed: of what is drawn.
        pruner: how hopeless trials are ended.
        heartbeat_s: seconds between two signs of life of a process.
    """

    name: str
    storage: str
    device: str
    aim: Aim = Aim.ACCURACY
    inference_weight: float = 0.5
    steps: int = 250
    all_rows: bool = False
    seed: int = 0
    pruner: PrunerName = PrunerName.MEDIAN
    heartbeat_s: int = 20


def tune(
    config: TrainingConfig,
    dataset: Dataset,
    options: StudyOptions,
    folder: Path,
    *,
    trials: int = 60,
    confirm: int = 3,
    console: Console,
) -> dict:
    """Search until the study has so many trials, whoever ran them, and write what it came to.

    Args:
        config: searched from; its own values are trial 0.
        dataset: measurements and their graphs.
        options: of the study.
        folder: of the results, see :func:`gnnperf.tuning.results.write_results`.
        trials: in total.
        confirm: how many of the best are trained again under two other seeds, beside the configuration's own values.
        console: told how far the search is.

    Returns:
        See :func:`gnnperf.tuning.results.summary`.

    Raises:
        TuningError: the storage cannot be used or belongs to another study, or the folder cannot be written.
        DataError: there are no families to tune by.
        TrainingError: the configuration leaves no rows to train on.
        Stopped: Ctrl-C; the same call continues.
    """
    tried = config if options.all_rows else narrowed(config, dataset.frame, options.device)
    optimisation = tried.optimisation.model_copy(update={"steps": options.steps})
    tried = tried.model_copy(update={"optimisation": optimisation})
    folds = validation_folds(dataset.frame, tried, options.device)
    steps = options.steps * len(folds)
    storage = open_storage(options.storage, options.heartbeat_s)
    identity = study_identity(tried, folds, options.device, options.aim, options.inference_weight, options.seed)
    own = values_of(config)
    strange = outside(config)

    def queue_own(study: Study) -> None:
        if not strange:
            study.enqueue_trial(own)

    study = open_study(
        storage, options.name, options.aim, options.seed, make_pruner(options.pruner, len(folds)), identity, queue_own
    )
    if strange:
        said = ", ".join(f"{name} {value}" for name, value in strange.items())
        console.print(f"the configuration itself is not tried: the search has no {said}", markup=False)
    parts = "; ".join(f"without {fold.name}, scored on its {len(fold.test)} rows" for fold in folds)
    console.print(
        f"study {options.name}: each trial trains {options.steps} steps {parts}", markup=False, soft_wrap=True
    )
    with StudyBar(console, trials, steps) as bar:
        objective = Objective(tried, dataset, folds, options.aim, options.inference_weight, bar.step)
        work(study, objective, trials, bar)

    again: list[Confirmed] = []
    if confirm:
        chosen = candidates(study, own, confirm)
        seeds = [config.seed + 1 + number for number in range(_OTHER_SEEDS)]
        confirmation = open_study(
            storage, f"{options.name}-confirmation", options.aim, options.seed, NopPruner(), identity,
            lambda other: enqueue(other, chosen, seeds),
        )  # fmt: skip
        total = enqueue(confirmation, chosen, seeds)
        with StudyBar(console, total, steps, confirms=True) as bar:
            objective = Objective(tried, dataset, folds, options.aim, options.inference_weight, bar.step)
            work(confirmation, objective, total, bar)
        again = confirmed(confirmation, chosen)
    return write_results(study, config, options.aim, folder, f"{options.name}-tuned", again)
