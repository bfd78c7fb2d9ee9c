"""Which backend runs a case. Frameworks are imported here alone, when they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Protocol

from gnnperf.conditions import Phase
from gnnperf.measure.cases import Campaign, Case
from gnnperf.measure.models import Network, RunnableModel


class Runner(Protocol):
    """A network in a framework, ready to run; ``version`` is the framework's."""

    version: str

    def run(self) -> Sequence[float]:
        """One whole run, finished on return; gives the times of its parts in milliseconds, or nothing."""

    def peak_memory_mb(self) -> float:
        """Most memory that the framework held on a GPU; NaN where it cannot tell."""


def make_runner(case: Case, model: RunnableModel) -> Runner:
    """A case's network in its framework.

    Raises:
        MeasureError: it cannot be run here.
    """
    campaign = case.campaign
    if not case.in_torch:
        from gnnperf.measure.onnxruntime_backend import OnnxruntimeInference

        return OnnxruntimeInference(model, case.target, campaign.threads, campaign.window)
    from gnnperf.measure.torch_backend import TorchInference, TorchLayerTrainingStep, TorchTrainingStep

    if case.phase == Phase.TRAINING:
        step = TorchLayerTrainingStep if case.of_layers else TorchTrainingStep
        return step(model, case.target, campaign.threads, campaign.window, campaign.optimizer)
    return TorchInference(model, case.target, campaign.threads, campaign.window)


def require_backends(campaign: Campaign) -> None:
    """See to it that everything a campaign needs is installed, rather than fail at every network.

    Raises:
        MeasureError: a framework lacks the device.
        ModuleNotFoundError: PyTorch is not installed.
    """
    for phase in campaign.phases:
        case = Case(Network(""), 1, phase, campaign)
        import_framework(case).require(case.target)


def import_framework(case: Case) -> ModuleType:
    """The module of the case's backend: importing it brings the framework in, and the memory that takes."""
    return import_module(f"gnnperf.measure.{'torch' if case.in_torch else 'onnxruntime'}_backend")
