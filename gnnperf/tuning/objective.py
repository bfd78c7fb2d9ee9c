"""What a trial does: a training a fold, each judged by the families that it left out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial

import lightning
from lightning.pytorch.callbacks import Callback
from optuna import TrialPruned
from optuna.trial import Trial

from gnnperf.conditions import Phase
from gnnperf.datasets.dataset import Dataset
from gnnperf.errors import DataError, TrainingError
from gnnperf.evaluation.protocols.folds import Fold
from gnnperf.nn.network import LatencyNetwork
from gnnperf.training.config import TrainingConfig
from gnnperf.training.fit import train_network
from gnnperf.training.split import Split
from gnnperf.tuning.options import REPORTS_PER_FOLD, TRIAL_SEED, Aim
from gnnperf.tuning.scoring import ValidationRows, phase_means, weighted_mape
from gnnperf.tuning.space import suggest


class Objective:
    """Trial -> mean over families of their MAPE in per cent, and what else the aim names.

    Every trial trains with the configuration's own seed, so that trials differ by their values alone, unless its
    attribute :data:`TRIAL_SEED` names another. With one figure to minimise, interim errors are reported halfway through
    each fold and at its end, each as if the families so far were all; with two there is no pruning (Optuna has none for
    that). A trial whose training diverges counts as pruned, as no sampler learns from a failed one.

    Args:
        config: of the trainings; its steps are the budget of a fold.
        dataset: where the graphs are.
        folds: see :func:`gnnperf.tuning.folds.validation_folds`.
        aim: what is minimised.
        inference_weight: of inference in the error, against training steps.
        on_step: told fold and step.

    Raises:
        DataError: none of the folds has rows of a phase that counts.
    """

    def __init__(
        self,
        config: TrainingConfig,
        dataset: Dataset,
        folds: list[Fold],
        aim: Aim = Aim.ACCURACY,
        inference_weight: float = 0.5,
        on_step: Callable[[str, int], None] = lambda fold, step: None,
    ) -> None:
        self._config = config
        self._dataset = dataset
        self._aim = aim
        self._inference_weight = inference_weight
        self._on_step = on_step
        self._folds = [(fold, ValidationRows(fold.test, dataset.graphs)) for fold in folds]
        weights = {Phase.INFERENCE: inference_weight, Phase.TRAINING: 1 - inference_weight}
        counted = {str(phase) for phase, weight in weights.items() if weight}
        if not any(fold.test["phase"].isin(counted).any() for fold in folds):
            raise DataError(f"no family has {' or '.join(counted)} rows to tune by: choose another weight or device")

    def __call__(self, trial: Trial) -> float | tuple[float, ...]:
        """Run a trial.

        Raises:
            TrialPruned: it is worse than others were so far, or its training diverged.
        """
        begin = time.process_time()
        config = suggest(trial, self._config)
        config = config.model_copy(update={"seed": trial.user_attrs.get(TRIAL_SEED, config.seed)})
        figures: dict[str, float] = {}
        mape: dict[str, dict[str, float]] = {}
        try:
            for number, (fold, rows) in enumerate(self._folds):
                step = number * REPORTS_PER_FOLD
                halfway = _Halfway(
                    partial(self._report_halfway, trial, step, mape, rows), partial(self._on_step, fold.name)
                )
                split = Split(fold.train, fold.test, fold.test.iloc[:0])
                network = train_network(fold.config(config), self._dataset, split, callbacks=(halfway,))
                if not number:  # the fold with most rows
                    figures["parameters"] = sum(parameter.numel() for parameter in network.parameters())
                    figures["predict_cpu_ms"] = rows.predict_cpu_ms(network)
                mape |= rows.mape(network)
                self._report(trial, step + 1, mape)
        except TrainingError as error:  # no longer finite
            trial.set_user_attr("diverged", str(error))
            raise TrialPruned(str(error)) from None
        finally:
            trial.set_user_attr("cpu_s", round(time.process_time() - begin, 1))
            trial.set_user_attr("mape", mape)
            for name, value in (phase_means(mape) | figures).items():
                trial.set_user_attr(name, value)
        figures["mape"] = weighted_mape(mape, self._inference_weight)
        values = tuple(figures[name] for name in self._aim.figures)
        return values if len(values) > 1 else values[0]

    def _report_halfway(
        self, trial: Trial, step: int, mape: dict[str, dict[str, float]], rows: ValidationRows, network: LatencyNetwork
    ) -> None:
        self._report(trial, step, mape | rows.mape(network))

    def _report(self, trial: Trial, step: int, mape: dict[str, dict[str, float]]) -> None:
        """Tell the study of an interim error; ends the trial where others were better at this step."""
        value = weighted_mape(mape, self._inference_weight)
        if len(self._aim.figures) > 1 or math.isnan(value):  # NaN: no family so far has the phase that counts
            return
        trial.report(value, step)
        if trial.should_prune():
            raise TrialPruned


class _Halfway(Callback):
    """Reports once in the middle of a training, and its steps all along."""

    def __init__(self, report: Callable[[LatencyNetwork], None], on_step: Callable[[int], None]) -> None:
        self._report, self._on_step = report, on_step

    def on_train_batch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, *_: object) -> None:
        self._on_step(trainer.global_step)
        if trainer.global_step == trainer.max_steps // 2:
            self._report(pl_module.network)
