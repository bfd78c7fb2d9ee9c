"""Random weights for a zoo model, so that a runtime can execute it."""

from __future__ import annotations

import math

import numpy as np
import onnx

from gnnperf.errors import ModelFileError

# A protobuf message cannot be larger.
_LIMIT_BYTES = 2**31 - 2**20


def fill_weights(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """Give every initializer without payload seeded random values, in place.

    Weights are He-normal, so that activations neither vanish nor overflow; biases and running means are 0, scales and
    running variances 1. Initializers with payload (shapes, scalars, masks) stay.

    Raises:
        ModelFileError: the weights would not fit into one ONNX file.
    """
    empty = [t for t in model.graph.initializer if not t.raw_data and math.prod(t.dims)]
    size_bytes = 4 * sum(math.prod(t.dims) for t in empty)
    if size_bytes > _LIMIT_BYTES:
        raise ModelFileError(
            f"{model.graph.name}: {size_bytes / 1e9:.1f} GB of weights exceed the 2 GB of an ONNX file; "
            "export it without weights"
        )
    generator = np.random.default_rng(seed)
    for tensor in empty:
        tensor.raw_data = _values(tensor.name.rpartition(".")[2], tuple(tensor.dims), generator).tobytes()
    return model


def _values(role: str, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    if role in ("bias", "running_mean"):
        return np.zeros(shape, np.float32)
    if role in ("scale", "running_var"):
        return np.ones(shape, np.float32)
    fan_in = math.prod(shape[1:])
    return generator.standard_normal(shape, np.float32) * np.float32(math.sqrt(2 / fan_in))
