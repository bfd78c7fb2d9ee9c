"""Stop and continue: what a run leaves behind, and what belongs to it."""

from __future__ import annotations

import hashlib
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import lightning
import pandas as pd
import torch
from lightning.pytorch.callbacks import Callback

from gnnperf.errors import TrainingError
from gnnperf.nn.network import LatencyNetwork
from gnnperf.training.config import TrainingConfig

CHECKPOINT_FILE = "last.ckpt"
_EVERY_STEPS = 100


class Interrupted(Exception):
    """Ctrl-C: the checkpoint is written, the same command continues from it."""


@dataclass(frozen=True)
class SavedRun:
    """What a checkpoint holds of a run.

    Attributes:
        step: optimisation steps done.
        seconds: that they took.
        module_state: state of the Lightning module.
    """

    step: int
    seconds: float
    module_state: dict


def run_identity(config: TrainingConfig, train: pd.DataFrame, network: LatencyNetwork) -> str:
    """Digest of everything that decides a run: a checkpoint continues only what it began."""
    digest = hashlib.sha256(config.model_dump_json().encode())
    digest.update(pd.util.hash_pandas_object(train, index=False).to_numpy().tobytes())
    for name, tensor in network.state_dict().items():
        digest.update(f"{name}{tuple(tensor.shape)}".encode())
    return digest.hexdigest()


def read_checkpoint(path: Path, identity: str) -> SavedRun | None:
    """What ``path`` holds of the run ``identity``; None where there is no such file.

    Nothing but tensors and plain data is read from it, so a file from elsewhere cannot run code.

    Raises:
        TrainingError: the file is damaged, foreign, or of another run.
    """
    if not path.exists():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        found = state["identity"]
        saved = SavedRun(int(state["global_step"]), float(state["seconds"]), state["state_dict"])
    except Exception as error:  # by what is damaged: RuntimeError, UnpicklingError, KeyError, OSError, EOFError ...
        raise TrainingError(
            f"{path} is no checkpoint of `gnnperf train`, or damaged ({type(error).__name__}); delete it to start again"
        ) from None
    if found != identity:
        raise TrainingError(
            f"the checkpoint {path} belongs to another configuration, seed, data or version; "
            "delete it to start again, or choose another output folder"
        )
    return saved


class Checkpoints(Callback):
    """Writes the checkpoint every hundred steps and after the last one.

    The first Ctrl-C ends the run after the current step and its checkpoint, a second one ends it at once.

    Args:
        path: of the checkpoint.
        identity: see :func:`run_identity`.
        seconds_before: what the steps before this process took.

    Attributes:
        seconds: training time until the last checkpoint, interruptions left out.
    """

    def __init__(self, path: Path, identity: str, seconds_before: float) -> None:
        self._interrupted = False
        self._path = path
        self._identity = identity
        self.seconds = seconds_before
        self._seconds_before = seconds_before
        self._start = time.perf_counter()
        self._previous = None

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:  # noqa: D102
        self._start = time.perf_counter()
        if threading.current_thread() is threading.main_thread():  # Python delivers signals there alone
            self._previous = signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, *_: object) -> None:
        self._interrupted = True
        self._restore_handler()

    def _restore_handler(self) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            self._previous = None

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: object) -> None:  # noqa: D102
        step = trainer.global_step
        if step % _EVERY_STEPS == 0 or step == trainer.max_steps or self._interrupted:
            trainer.save_checkpoint(self._path)
            trainer.should_stop = self._interrupted  # here and nowhere else: no run stops without its checkpoint

    def on_save_checkpoint(  # noqa: D102
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, checkpoint: dict
    ) -> None:
        checkpoint["identity"] = self._identity
        self.seconds = self._seconds_before + time.perf_counter() - self._start
        checkpoint["seconds"] = self.seconds

    def on_train_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:  # noqa: D102
        self._restore_handler()

    def on_exception(self, *_: object) -> None:  # noqa: D102
        self._restore_handler()
