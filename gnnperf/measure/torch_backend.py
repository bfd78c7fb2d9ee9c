"""Inference and training steps in eager PyTorch, on the processor or a CUDA GPU."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnperf.conditions import Optimizer, Stack, Window
from gnnperf.errors import MeasureError
from gnnperf.measure.models import RunnableModel
from gnnperf.measure.torch_module import OnnxModule

OPTIMIZERS: dict[Optimizer, Callable[..., torch.optim.Optimizer]] = {
    Optimizer.SGD: lambda weights: torch.optim.SGD(weights, lr=1e-6),
    Optimizer.MOMENTUM: lambda weights: torch.optim.SGD(weights, lr=1e-6, momentum=0.9),
    Optimizer.ADAM: lambda weights: torch.optim.Adam(weights, lr=1e-6),
    Optimizer.ADADELTA: lambda weights: torch.optim.Adadelta(weights, lr=1e-6),
    Optimizer.ADAGRAD: lambda weights: torch.optim.Adagrad(weights, lr=1e-6),
    Optimizer.RMSPROP: lambda weights: torch.optim.RMSprop(weights, lr=1e-6),
}
"""Rates are tiny, so that weights stay what they are however often a step is repeated."""


def require(target: str) -> None:
    """Refuse a device that PyTorch does not see.

    Raises:
        MeasureError: there is no GPU, or no CUDA build of PyTorch.
    """
    if target == "cuda" and not torch.cuda.is_available():
        raise MeasureError("PyTorch sees no CUDA GPU here: is its CUDA build installed, and the driver?")


class TorchRunner:
    """What both phases share: the module and its inputs in place, and how to know that the device has finished.

    Args:
        model: what to run.
        target: ``cpu`` or ``cuda``.
        threads: for the operators of the processor.
        window: ``device`` keeps the inputs on the device; the copies bring them from the host in every run.

    Raises:
        MeasureError: there is no such device, it has too little memory, or the model cannot be run in PyTorch.
    """

    stack = Stack.PYTORCH
    version = torch.__version__

    def __init__(self, model: RunnableModel, target: str, threads: int, window: Window = Window.DEVICE) -> None:
        require(target)
        torch.set_num_threads(threads)
        torch.set_flush_denormal(True)  # random weights can give such numbers, which are slow; real ones hardly do
        self._name = model.name
        self._device = torch.device(target)
        self._on_gpu = target == "cuda"
        self._copies = window != Window.DEVICE
        inputs = [torch.from_numpy(array) for array in model.random_inputs().values()]
        if window == Window.PINNED_COPY:
            inputs = [tensor.pin_memory() for tensor in inputs]
        try:
            if self._on_gpu:
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
            self._module = OnnxModule(model.proto).to(self._device)
            self._inputs = inputs if self._copies else [tensor.to(self._device) for tensor in inputs]
            self._prepare(self._module)
            self.run()
        except MeasureError as error:
            raise MeasureError(f"{model.name}: {error}") from None
        except torch.OutOfMemoryError:
            raise MeasureError(f"{model.name}: the GPU's memory is too small for it: take a smaller batch") from None
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            reason = " ".join(str(error).split())[:300]
            raise MeasureError(f"{model.name}: PyTorch cannot run it: {reason}") from None

    def run(self) -> Sequence[float]:
        """One whole run, finished on return; gives the times of its parts in milliseconds."""
        raise NotImplementedError

    def peak_memory_mb(self) -> float:
        """Most that the GPU's allocator held; NaN on the processor, where the process tells."""
        return torch.cuda.max_memory_allocated() / 2**20 if self._on_gpu else math.nan

    def _prepare(self, module: nn.Module) -> None:
        raise NotImplementedError

    def _placed_inputs(self) -> list[Tensor]:
        return [tensor.to(self._device, non_blocking=True) for tensor in self._inputs] if self._copies else self._inputs

    def _finish(self) -> None:
        if self._on_gpu:
            torch.cuda.synchronize()


class TorchInference(TorchRunner):
    """A forward pass that keeps nothing for a backward pass."""

    def _prepare(self, module: nn.Module) -> None:
        module.eval()

    def run(self) -> Sequence[float]:
        """One inference; it has no parts."""
        with torch.inference_mode():
            self._module(*self._placed_inputs())
        self._finish()
        return ()


class TorchTrainingStep(TorchRunner):
    """Forward pass and loss, backward pass, update: the parts in this order.

    The loss is the cross-entropy of ``[batch, classes]``, else the mean square of the first output.

    Args:
        model: what to train.
        target: ``cpu`` or ``cuda``.
        threads: for the operators of the processor.
        window: see :class:`TorchRunner`.
        optimizer: update rule; ``none`` leaves the update out.
    """

    parts = ("forward", "backward", "update")

    def __init__(
        self,
        model: RunnableModel,
        target: str,
        threads: int,
        window: Window = Window.DEVICE,
        optimizer: Optimizer = Optimizer.SGD,
    ) -> None:
        self._rule = optimizer
        super().__init__(model, target, threads, window)

    def _prepare(self, module: nn.Module) -> None:
        module.train()
        weights = list(module.parameters())
        if not weights:
            raise MeasureError("it has no weights to train")
        self._optimizer = self._make_optimizer(weights)
        self._target: Tensor | None = None

    def run(self) -> Sequence[float]:
        """One step."""
        marks = [self._mark()]
        ahead = self._forward()
        marks.append(self._mark())
        self._backward(ahead)
        marks.append(self._mark())
        if self._optimizer is not None:
            self._optimizer.step()
        self._module.zero_grad(set_to_none=True)
        marks.append(self._mark())
        self._finish()
        return [self._between_ms(begin, end) for begin, end in pairwise(marks)]

    def _forward(self) -> Tensor:
        return self._loss(self._module(*self._placed_inputs())[0])

    def _backward(self, ahead: Tensor) -> None:
        ahead.backward()

    def _make_optimizer(self, weights: list[nn.Parameter]) -> torch.optim.Optimizer | None:
        make = OPTIMIZERS.get(self._rule)
        return make(weights) if make and weights else None

    def _loss(self, output: Tensor) -> Tensor:
        if output.dim() != 2:
            return output.square().mean()
        if self._target is None:
            self._target = torch.arange(output.shape[0], device=output.device) % output.shape[1]
        return F.cross_entropy(output, self._target)

    def _mark(self) -> float | torch.cuda.Event:
        """Now; on a GPU, when it gets there: waiting for it between the parts would slow the step down."""
        if not self._on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    @staticmethod
    def _between_ms(begin: float | torch.cuda.Event, end: float | torch.cuda.Event) -> float:
        return begin.elapsed_time(end) if isinstance(begin, torch.cuda.Event) else 1e3 * (end - begin)


class TorchLayerTrainingStep(TorchTrainingStep):
    """A layer's share of a training step: as inside a network it gives its input's gradient too, and has no loss."""

    def _prepare(self, module: nn.Module) -> None:
        module.train()
        self._optimizer = self._make_optimizer(list(module.parameters()))
        self._gradient: Tensor | None = None
        for tensor in self._inputs:
            tensor.requires_grad_(tensor.is_floating_point())

    def _forward(self) -> Tensor:
        for tensor in self._inputs:
            tensor.grad = None
        return self._module(*self._placed_inputs())[0]

    def _backward(self, ahead: Tensor) -> None:
        if self._gradient is None:
            self._gradient = torch.ones_like(ahead)
        ahead.backward(self._gradient)
