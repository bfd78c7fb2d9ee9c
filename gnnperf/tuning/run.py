"""A whole search: trials, the best of them again under other seeds, results."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from optuna import Study
from rich.console import Console

from gnnperf.datasets.dataset import Dataset
from gnnperf.errors import TuningError
from gnnperf.training.config import TrainingConfig
from gnnperf.tuning.confirmation import Confirmed, candidates, confirmed, enqueue
from gnnperf.tuning.folds import narrowed, validation_folds
from gnnperf.tuning.objective import Objective
from gnnperf.tuning.options import Aim, PrunerName
from gnnperf.tuning.progress import StudyBar
from gnnperf.tuning.results import write_results
from gnnperf.tuning.space import outside, values_of
from gnnperf.tuning.storage import lost_storage_in_one_line, open_storage
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

    Raises:
        TuningError: the name cannot be that of a configuration.
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

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", self.name):
            raise TuningError(f"a study cannot be named {self.name!r}: letters, digits, _, . and - only")


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
    with lost_storage_in_one_line():
        return _Tuning(config, dataset, options, console).run(folder, trials, confirm)


class _Tuning:
    """What the two studies of a search have in common."""

    def __init__(self, config: TrainingConfig, dataset: Dataset, options: StudyOptions, console: Console) -> None:
        self._config, self._dataset, self._options, self._console = config, dataset, options, console
        tried = config if options.all_rows else narrowed(config, dataset.frame, options.device)
        optimisation = tried.optimisation.scoring_only(options.device).model_copy(update={"steps": options.steps})
        self._tried = tried.model_copy(update={"optimisation": optimisation})
        self._folds = validation_folds(dataset.frame, self._tried, options.device)
        self._identity = study_identity(
            self._tried, self._folds, options.device, options.aim, options.inference_weight, options.seed
        )
        self._storage = open_storage(options.storage, options.heartbeat_s)

    def run(self, folder: Path, trials: int, confirm: int) -> dict:
        name, own, strange = self._options.name, values_of(self._config), outside(self._config)
        study = self._open(name, self._options.pruner, lambda made: None if strange else made.enqueue_trial(own))
        if strange:
            said = ", ".join(f"{key} {value}" for key, value in strange.items())
            self._say(f"the configuration itself is not tried: the search has no {said}")
        parts = "; ".join(f"without {fold.name}, scored on its {len(fold.test)} rows" for fold in self._folds)
        self._say(f"study {name}: each trial trains {self._options.steps} steps {parts}")
        self._work(study, trials, confirms=False)

        again: list[Confirmed] = []
        if confirm:
            chosen = candidates(study, own, confirm)
            seeds = [self._config.seed + 1 + number for number in range(_OTHER_SEEDS)]
            confirmation = self._open(
                f"{name}-confirmation", PrunerName.NONE, lambda made: enqueue(made, chosen, seeds)
            )
            self._work(confirmation, enqueue(confirmation, chosen, seeds), confirms=True)
            again = confirmed(confirmation, chosen)
        return write_results(study, self._config, self._options.aim, folder, f"{name}-tuned", again)

    def _open(self, name: str, pruner: PrunerName, fill: Callable[[Study], object]) -> Study:
        options = self._options
        pruned_by = make_pruner(pruner, len(self._folds))
        return open_study(self._storage, name, options.aim, options.seed, pruned_by, self._identity, fill)

    def _work(self, study: Study, trials: int, *, confirms: bool) -> None:
        options = self._options
        with StudyBar(self._console, trials, options.steps * len(self._folds), confirms=confirms) as bar:
            objective = Objective(
                self._tried, self._dataset, self._folds, options.aim, options.inference_weight, bar.step
            )
            work(study, objective, trials, bar)

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)
