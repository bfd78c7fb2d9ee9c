"""Under which conditions a latency holds: phase, precision, software stack, timing window, optimizer.

The same network on the same device differs by tens of per cent between these, so every measurement names them and
every prediction is made for them. Values are stored in tables and networks: append, never reorder.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """What is timed."""

    INFERENCE = "inference"  # forward pass, nothing kept for a backward pass
    FORWARD = "forward"  # forward part of a training step
    BACKWARD = "backward"
    TRAINING = "training"  # forward + loss + backward (+ update, where the optimizer is not "none")


class Precision(StrEnum):
    """Number format of activations and weights."""

    FP32 = "fp32"
    FP16 = "fp16"
    FP64 = "fp64"


class Stack(StrEnum):
    """Framework generation that ran the network."""

    PYTORCH = "pytorch"  # PyTorch 0.4 and later
    PYTORCH_01 = "pytorch-0.1"
    TORCH7 = "torch7"
    CAFFE = "caffe"
    CAFFE2 = "caffe2"
    MXNET = "mxnet"
    TENSORFLOW_1 = "tensorflow-1"
    TENSORFLOW_2 = "tensorflow-2"
    TENSORRT = "tensorrt"
    THEANO = "theano"
    NEON = "neon"
    ONNXRUNTIME = "onnxruntime"


class Window(StrEnum):
    """What the timed window includes beside the work on the device."""

    DEVICE = "device"  # input already on the device
    PINNED_COPY = "pinned-copy"  # host-to-device copy of the input from pinned memory
    PAGEABLE_COPY = "pageable-copy"  # the same from ordinary memory
    SESSION = "session"  # a session call with feeds and fetches: input copied in, output copied out


class Optimizer(StrEnum):
    """Update rule that a training step ends with."""

    NONE = "none"
    SGD = "sgd"
    MOMENTUM = "momentum"
    ADAM = "adam"
    ADADELTA = "adadelta"
    ADAGRAD = "adagrad"
    RMSPROP = "rmsprop"


@dataclass(frozen=True, slots=True)
class Conditions:
    """Everything but graph, batch and device that a latency depends on; the defaults are what most users mean."""

    phase: Phase = Phase.INFERENCE
    precision: Precision = Precision.FP32
    stack: Stack = Stack.PYTORCH
    window: Window = Window.DEVICE
    optimizer: Optimizer = Optimizer.NONE

    def indices(self) -> list[int]:
        """Phase, precision, stack, window and optimizer as the numbers that the network takes."""
        return [
            list(type(value)).index(value)
            for value in (self.phase, self.precision, self.stack, self.window, self.optimizer)
        ]
