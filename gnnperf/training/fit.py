"""Fit a network from a configuration: Lightning's loop around seeded steps, and the predictor that comes out of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import lightning
import torch
from lightning.pytorch.callbacks import Callback
from torch.utils.data import DataLoader, Sampler

from gnnperf.datasets.dataset import Dataset
from gnnperf.errors import TrainingError
from gnnperf.graph import GraphArrays, read_graph, to_arrays
from gnnperf.nn.network import LatencyNetwork, NetworkConfig
from gnnperf.training.checkpoint import CHECKPOINT_FILE, Checkpoints, Interrupted, read_checkpoint, run_identity
from gnnperf.training.config import TrainingConfig
from gnnperf.training.module import LatencyModule
from gnnperf.training.predictor_files import write_predictor
from gnnperf.training.quiet import quiet
from gnnperf.training.samples import TrainingSteps, own_level_campaigns, row_campaigns, row_device_slugs
from gnnperf.training.split import Split, split_rows

# Architectures without a latency of their own in the training set, on which the corrections are pulled to zero.
UNLABELLED = (
    "efficientnet_b0",
    "mobilenet_v3_large",
    "mobilenet_v3_small",
    "shufflenet_v2_x1_0",
    "mnasnet1_0",
    "resnext50_32x4d",
    "densenet121",
    "squeezenet1_1",
    "inception_v4",
    "wide_resnet50_2",
    "bert_base",
    "gpt2",
)


def fit(
    config: TrainingConfig,
    dataset: Dataset,
    folder: Path,
    *,
    split: Split | None = None,
    callbacks: tuple[Callback, ...] = (),
) -> Split:
    """Train, resuming from ``folder/last.ckpt`` where that belongs to the same configuration and data.

    The same configuration and data give the same weights, interrupted or not. Writes into ``folder`` the files of the
    predictor (:mod:`gnnperf.training.predictor_files`); of a finished run, only those are written anew.

    Args:
        config: what to train.
        dataset: measurements and their graphs.
        folder: made where it does not exist.
        split: the rows, where :func:`split_rows` has been called already.
        callbacks: more of Lightning's callbacks, such as :class:`gnnperf.training.progress.TrainingBar`.

    Returns:
        The split, for reports.

    Raises:
        TrainingError: no rows are left, the checkpoint is of another run or damaged, the loss is no longer a number,
            or the folder cannot be written.
        Interrupted: Ctrl-C, after the checkpoint was written.
        KeyboardInterrupt: Ctrl-C before the first step or a second time.
    """
    split = split or split_rows(dataset.frame, config.data, config.seed)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _one_thread(), quiet("lightning.pytorch"):
            _fit(config, dataset, split, folder, callbacks)
    except OSError as error:
        raise TrainingError(f"cannot write to {folder}: {error.strerror or error}") from None
    return split


def train_network(
    config: TrainingConfig, dataset: Dataset, split: Split, *, callbacks: tuple[Callback, ...] = ()
) -> LatencyNetwork:
    """Train as :func:`fit` does, to the same weights, but write nothing: a run that is stopped is lost.

    Args:
        config: what to train.
        dataset: where the graphs of the rows are.
        split: the rows.
        callbacks: Lightning's; an exception that one of them raises ends the run and is raised here.

    Raises:
        TrainingError: the loss is no longer a number.
        KeyboardInterrupt: Ctrl-C.
    """
    with _one_thread(), quiet("lightning.pytorch"):
        module, steps = _module(config, dataset, split)
        _optimise(module, steps, callbacks)
    _refuse_infinite(module.network)
    return module.network


def _fit(config: TrainingConfig, dataset: Dataset, split: Split, folder: Path, callbacks: tuple[Callback, ...]) -> None:
    module, steps = _module(config, dataset, split)
    path = folder / CHECKPOINT_FILE
    identity = run_identity(config, split.train, module.network)
    done = read_checkpoint(path, identity)
    total = len(steps)
    if done and done.step >= total:
        module.load_state_dict(done.module_state)
        seconds = done.seconds
    else:
        checkpoints = Checkpoints(path, identity, done.seconds if done else 0.0)
        first, continued = (done.step, path) if done else (0, None)
        reached = _optimise(module, steps, (checkpoints, *callbacks), first, continued)
        if reached < total:
            raise Interrupted(f"stopped after step {reached} of {total}")
        seconds = checkpoints.seconds
    _refuse_infinite(module.network)
    write_predictor(folder, module.network, config, split, dataset.graphs, seconds)


def _module(config: TrainingConfig, dataset: Dataset, split: Split) -> tuple[LatencyModule, TrainingSteps]:
    """The network as it starts, and its steps."""
    torch.manual_seed(config.seed)
    steps = _steps(config, dataset, split)
    network = LatencyNetwork(
        NetworkConfig(
            **config.network.model_dump(),
            campaigns=steps.campaigns,
            own_level_campaigns=own_level_campaigns(split.train),
            devices=steps.devices,
        )
    )
    return LatencyModule(network, config.optimisation, steps.networks), steps


def _optimise(
    module: LatencyModule,
    steps: TrainingSteps,
    callbacks: tuple[Callback, ...],
    first: int = 0,
    checkpoint: Path | None = None,
) -> int:
    """Run the steps from ``first`` on, where ``checkpoint`` was written; the number of the step that was reached."""
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_steps=len(steps),
        max_epochs=1,
        callbacks=list(callbacks),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loader = DataLoader(steps, batch_size=None, sampler=_StepsFrom(first, len(steps)))
    try:
        trainer.fit(module, loader, ckpt_path=str(checkpoint) if checkpoint else None, weights_only=True)
    except SystemExit:  # what Lightning makes of Ctrl-C
        raise KeyboardInterrupt from None
    return trainer.global_step


def _refuse_infinite(network: LatencyNetwork) -> None:
    if not all(torch.isfinite(parameter).all() for parameter in network.parameters()):
        raise TrainingError("the weights are no longer finite: lower the learning rates")


def _steps(config: TrainingConfig, dataset: Dataset, split: Split) -> TrainingSteps:
    return TrainingSteps(
        split.train,
        dataset.graphs,
        tuple(sorted(set(row_campaigns(split.train)))),
        tuple(sorted(set(row_device_slugs(split.train)))),
        config.optimisation.batch,
        config.optimisation.loss_weight,
        unlabelled_graphs(config.data.held_out_families) if config.optimisation.batch.unlabelled else [],
        config.optimisation.steps,
        config.seed,
        config.optimisation.focus,
    )


def unlabelled_graphs(held_out_families: Iterable[str]) -> list[GraphArrays]:
    """Diverse zoo graphs at batch 1, none of a headline family or of those held out."""
    from gnnperf import zoo

    held_out = set(held_out_families)
    return [to_arrays(read_graph(zoo.build(name), batch=1)) for name in UNLABELLED if zoo.family(name) not in held_out]


class _StepsFrom(Sampler[int]):
    """Step numbers from the first one that is still to be done.

    Its length is that of the whole run: Lightning compares it with the number of the step, also after resuming.
    """

    def __init__(self, first: int, total: int) -> None:
        self._first, self._total = first, total

    def __len__(self) -> int:
        return self._total

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._first, self._total))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Sums in one order, hence the same weights on any number of cores; the graphs are too small to gain from more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
