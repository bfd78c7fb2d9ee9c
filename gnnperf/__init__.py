"""gnnperf: how long a neural network takes on a device you may not own, from its ONNX file alone."""

__version__ = "0.1.0"
