"""Justus et al. 2018 (CDECatapult/ml-performance-prediction, Apache-2.0): single layers, TensorFlow 1, six GPUs.

"Predicting the Computational Cost of Deep Learning Models", IEEE Big Data 2018. 25,000 convolutions and 25,000 dense
layers on each of GTX 1080 Ti, K40, K80, M60, P100 and V100 (50,000 convolutions there), at random sizes, and VGG16 on
a V100. Median of five repeats of 50 iterations; the spread is their standard deviation.

A row with optimizer 0 is a forward pass; with 1 to 6 it is forward, backward and update by the optimizer named in
:data:`OPTIMIZERS`. The wall clock runs around ``session.run`` (a floor of about 0.1 ms, which belongs to the stack),
but inputs are variables on the device and results stay there: large outputs leave at up to 125 GB/s, ten times what the
host link carries. So the window is "device".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from gnnperf.conditions import Optimizer, Phase, Stack
from gnnperf.datasets.schema import Kind, concatenate, measurements
from gnnperf.datasets.unpickle import load_frame_columns
from gnnperf.errors import DataError

NAME = "justus2018"
# Column "optimizer" of the source, by position.
OPTIMIZERS = (
    Optimizer.NONE,
    Optimizer.SGD,
    Optimizer.ADADELTA,
    Optimizer.ADAGRAD,
    Optimizer.MOMENTUM,
    Optimizer.ADAM,
    Optimizer.RMSPROP,
)
# Column "activation_fct": none, tf.nn.relu, tf.nn.tanh, tf.nn.sigmoid.
ACTIVATIONS = (None, "relu", "tanh", "sigmoid")
# Column "padding".
PADDINGS = ("valid", "same")
_DEVICES = {"1080ti": "1080ti", "K40": "k40", "k80": "k80", "M60": "m60", "P100": "p100-pcie", "V100": "v100-pcie"}
_VGG16 = {
    "FW": (Phase.INFERENCE, Optimizer.NONE),
    "sgd": (Phase.TRAINING, Optimizer.SGD),
    "adam": (Phase.TRAINING, Optimizer.ADAM),
}
FILES = ("raw_data/*/*/benchmark_*.pkl", "vgg16_v100/benchmark_VGG16_V100_*.csv")


def read(folder: Path) -> pd.DataFrame:
    """Rows of all layer files, then VGG16.

    Raises:
        DataError: a file is damaged, in another format, or of a device that is not among the six.
    """
    frames = []
    for path in sorted(folder.glob(FILES[0])):
        citation = path.relative_to(folder).as_posix()
        device = citation.split("/")[1]
        if device not in _DEVICES:
            raise DataError(f"{path}: {device} is none of {', '.join(_DEVICES)}")
        frames.append(_layers(load_frame_columns(path), path, citation, _DEVICES[device]))
    frames += [_vgg16(path, path.relative_to(folder).as_posix()) for path in sorted(folder.glob(FILES[1]))]
    return concatenate(frames)


def _layers(table: pd.DataFrame, path: Path, citation: str, device: str) -> pd.DataFrame:
    from gnnperf.zoo.layers import ConvLayer, DenseLayer

    def column(name: str, limit: int | None = None) -> list[int]:
        values = table[name].astype(int)
        if limit is not None and not values.between(0, limit - 1).all():
            raise DataError(f"{path}: column {name} holds values outside 0 ... {limit - 1}")
        return values.tolist()

    try:
        optimizer = np.array(column("optimizer", len(OPTIMIZERS)))
        activation = [ACTIVATIONS[index] for index in column("activation_fct", len(ACTIVATIONS))]
        if "matsize" in table:
            specs = [
                str(ConvLayer(*sizes, padding=PADDINGS[same], bias=bool(bias), activation=function))
                for *sizes, same, bias, function in zip(
                    column("matsize"), column("channels_in"), column("channels_out"), column("kernelsize"),
                    column("strides"), column("padding", 2), column("use_bias", 2), activation, strict=True,
                )
            ]  # fmt: skip
        else:
            specs = [
                str(DenseLayer(inputs, outputs, activation=function))
                for inputs, outputs, function in zip(column("dim_input"), column("dim_output"), activation, strict=True)
            ]
        return measurements(
            source=NAME,
            model=specs,
            kind=Kind.LAYER,
            device=device,
            stack=Stack.TENSORFLOW_1,
            batch=column("batchsize"),
            phase=np.where(optimizer == 0, Phase.INFERENCE.value, Phase.TRAINING.value),
            optimizer=np.array([name.value for name in OPTIMIZERS])[optimizer],
            latency_ms=table["timeUsed_median"],
            spread_ms=table["timeUsed_std"],
            repeats=5,
            citation=citation,
        )
    except KeyError as error:
        raise DataError(f"{path}: column {error} is missing") from None


def _vgg16(path: Path, citation: str) -> pd.DataFrame:
    phase, optimizer = _VGG16[path.stem.split("_")[3]]
    table = pd.read_csv(path, skipinitialspace=True)
    return measurements(
        source=NAME,
        model="vgg16",
        device="v100-pcie",
        stack=Stack.TENSORFLOW_1,
        batch=table["batchsize"],
        phase=phase,
        optimizer=optimizer,
        latency_ms=table["time per batch (ms)"],
        citation=citation,
    )
