"""What is measured, in which order: every network at every batch in every phase, and its layers where asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gnnperf.conditions import Optimizer, Phase, Precision, Stack, Window
from gnnperf.errors import MeasureError
from gnnperf.measure.models import Network
from gnnperf.measure.rows import RowKey
from gnnperf.zoo.layers import is_single_layer

BACKENDS = ("onnxruntime", "onnxruntime-cuda", "tensorrt", "torch", "torch-cuda")
"""What can run a network. A training step always runs in PyTorch, on the same kind of device."""

_TARGETS = {"onnxruntime": "cpu", "onnxruntime-cuda": "cuda", "tensorrt": "tensorrt", "torch": "cpu",
            "torch-cuda": "cuda"}  # fmt: skip


@dataclass(frozen=True)
class Campaign:
    """Everything that one call of ``gnnperf measure`` measures.

    Attributes:
        networks: files and architectures.
        batches: batch sizes.
        phases: ``inference`` and/or ``training``.
        backend: one of :data:`BACKENDS`.
        window: what the timed window includes.
        optimizer: of training steps.
        threads: of the framework.
        device: name that the rows carry.
        per_layer: time every operator by itself instead of the whole network.
        peak_memory: on a processor, run every network once more in a process of its own to see its peak memory.
    """

    networks: Sequence[Network]
    batches: Sequence[int] = (1,)
    phases: Sequence[Phase] = (Phase.INFERENCE,)
    backend: str = "onnxruntime"
    window: Window = Window.DEVICE
    optimizer: Optimizer = Optimizer.SGD
    threads: int = 1
    device: str = ""
    per_layer: bool = False
    peak_memory: bool = False

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise MeasureError(f"no backend {self.backend!r}: one of {', '.join(BACKENDS)}")
        if not self.on_gpu and self.window != Window.DEVICE:
            raise MeasureError(f"window {self.window} needs a GPU: on a processor there is nothing to copy")
        in_torch = any(runs_in_torch(self.backend, phase) for phase in self.phases)
        in_session = any(not runs_in_torch(self.backend, phase) for phase in self.phases)
        if in_session and self.window not in (Window.DEVICE, Window.SESSION):
            raise MeasureError(f"onnxruntime measures the windows device and session, not {self.window}")
        if in_torch and self.window == Window.SESSION:
            raise MeasureError("the window session is onnxruntime's: PyTorch measures device and the two copies")

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU runs the networks."""
        return _TARGETS[self.backend] != "cpu"

    def cases(self) -> Iterator[Case]:
        """Every combination, those of a network together."""
        for network in self.networks:
            for batch in self.batches:
                for phase in self.phases:
                    yield Case(network, batch, phase, self)


@dataclass(frozen=True)
class Case:
    """One network at one batch size in one phase.

    Attributes:
        network: what runs.
        batch: batch size.
        phase: ``inference`` or ``training``.
        campaign: what it is part of.
    """

    network: Network
    batch: int
    phase: Phase
    campaign: Campaign = field(repr=False)

    @property
    def in_torch(self) -> bool:
        """Whether PyTorch runs it; else onnxruntime does."""
        return runs_in_torch(self.campaign.backend, self.phase)

    @property
    def target(self) -> str:
        """``cpu``, ``cuda`` or ``tensorrt``."""
        target = _TARGETS[self.campaign.backend]
        return "cuda" if self.in_torch and target == "tensorrt" else target

    @property
    def stack(self) -> Stack:
        """The stack that its row names."""
        if self.in_torch:
            return Stack.PYTORCH
        return Stack.TENSORRT if self.target == "tensorrt" else Stack.ONNXRUNTIME

    @property
    def optimizer(self) -> Optimizer:
        """Of its row: none for inference."""
        return self.campaign.optimizer if self.phase == Phase.TRAINING else Optimizer.NONE

    @property
    def of_layers(self) -> bool:
        """Whether it times layers by themselves, the zoo's single layers among them."""
        return self.campaign.per_layer or is_single_layer(self.network.name)

    def key(self, precision: Precision, layer: str = "") -> RowKey:
        """Of its row."""
        campaign = self.campaign
        return RowKey(
            self.network.name, layer, self.batch, self.phase, self.stack, precision, campaign.window, self.optimizer,
            campaign.device, campaign.threads, self.network.shapes,
        )  # fmt: skip

    def describe(self) -> str:
        """For progress and messages."""
        return f"{self.network.name}, batch {self.batch}, {self.phase}"


def runs_in_torch(backend: str, phase: Phase) -> bool:
    """Whether PyTorch runs a phase; onnxruntime has no training step."""
    return phase == Phase.TRAINING or backend.startswith("torch")
