"""ResPerfNet's measurements (s9013xx/training_data_tmp @2f67ac8): layers run one by one, TensorFlow 1, four GPUs.

"ResPerfNet: Deep Residual Learning for Regressional Performance Modeling of Deep Neural Networks" (Wang, Liao, Kao,
Liang, Hung; arXiv 2012.01671). 30,000 layers to train on and 20,000 to test on, of each of convolution, dense and
pooling, on a GTX 1080 Ti; the test layers again on Quadro P1000, P4000 and P5000; and every layer of six networks.

They come without a licence: for evaluation, and for baselines inside a benchmark. So this is no source of ``gnnperf
data import``, and every row says ``use`` "evaluate", which no network of ours is trained on.

A layer's time is that of a session which runs this layer alone, and contains the copy of its output to the host. A sum
over a network's layers is hence no time that the network takes (VGG16 at batch 16: 123 ms, against 39 to 54 end to
end), but it is what ResPerfNet predicts and was scored on.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from gnnperf.conditions import Stack, Window
from gnnperf.datasets.schema import Kind, Use, concatenate, measurements, validate
from gnnperf.errors import DataError
from gnnperf.zoo.layers import ConvLayer, DenseLayer, PoolLayer

NAME = "resperfnet"
NETWORKS = {
    "lenet": "lenet",
    "alexnet": "alexnet_single_tower",
    "vgg16": "vgg16",
    "vgg19": "vgg19",
    "resnet50": "caffe_resnet50",
    "inceptionv3": "inception_v3",
}
"""Folders of the networks whose layers were timed, and the zoo's network of the same layers."""
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
"""Batch sizes at which they were."""
_LAYER_FILES = {
    "layers_1080ti/conv_train.csv": "1080ti",
    "layers_1080ti/conv_test.csv": "1080ti",
    "layers_1080ti/fc_train.csv": "1080ti",
    "layers_1080ti/fc_test.csv": "1080ti",
    "layers_1080ti/pool_train.csv": "1080ti",
    "layers_1080ti/pool_test.csv": "1080ti",
    **{
        f"layers_other/{device}_{kind}.csv.gz": device
        for device in ("p1000", "p4000", "p5000")
        for kind in ("convolution", "dense", "pooling")
    },
}
_PADDINGS = ("valid", "same")
_TRAIN_SUFFIX = "_train.csv"


def read_layers(folder: Path, devices: Iterable[str] = ("1080ti",)) -> pd.DataFrame:
    """Layers at random sizes: rows of the schema, without graphs (``model`` describes the layer completely).

    Args:
        folder: holds ``layers_1080ti`` and ``layers_other``.
        devices: slugs among 1080ti, p1000, p4000 and p5000.

    Raises:
        DataError: a device is none of the four, or a file is missing, damaged or in another form.
    """
    devices = set(devices)
    unknown = devices - set(_LAYER_FILES.values())
    if unknown:
        raise DataError(f"ResPerfNet's layers were not timed on {min(unknown)}, but on 1080ti, p1000, p4000 and p5000")
    frames = [
        _rows(folder / name, _read(folder / name), name, device)
        for name, device in _LAYER_FILES.items()
        if device in devices
    ]
    return validate(concatenate(frames), str(folder))


def is_test_layer(frame: pd.DataFrame) -> np.ndarray:
    """``[rows]`` whether the authors kept a layer of :func:`read_layers` out of their training."""
    return ~frame["citation"].astype(str).str.endswith(_TRAIN_SUFFIX).to_numpy(bool)


def read_model_layers(folder: Path) -> pd.DataFrame:
    """Every layer of the six networks at eight batch sizes, timed by itself on the GTX 1080 Ti.

    Rows of the schema (``kind`` "layer", ``model`` describes the layer, no graph) and two columns more: ``network``,
    the zoo's specification of the network, and ``layer``, Keras' name. Kernels of 1x7 and 7x1 were timed as 7x7.

    Args:
        folder: holds ``models_1080ti``.

    Raises:
        DataError: a file is missing, damaged or in another form.
    """
    frames, networks, names = [], [], []
    for network, spec in NETWORKS.items():
        for batch in BATCHES:
            citation = f"models_1080ti/{network}/{network}_{batch}.csv"
            table = _read(folder / citation)
            rows = _rows(folder / citation, table, citation, "1080ti")
            if set(rows["batch"]) != {batch}:
                raise DataError(f"{folder / citation} holds other batch sizes than {batch}")
            frames.append(rows)
            networks += [spec] * len(rows)
            names += table["name"].astype(str).tolist()
    return validate(concatenate(frames), str(folder)).assign(network=networks, layer=names)


def read_model_sums(folder: Path) -> pd.DataFrame:
    """Sums over the layers of :func:`read_model_layers`: one row a network and batch size, 48 in all.

    Rows of the schema whose ``latency_ms`` is the sum of the layers' medians, not an end-to-end time; ``model`` is the
    zoo's specification of the network. Only convolutions, dense layers and poolings were timed.

    Args:
        folder: holds ``models_1080ti``.

    Raises:
        DataError: see :func:`read_model_layers`.
    """
    sums = (
        read_model_layers(folder)
        .groupby(["network", "batch", "citation"], observed=True, sort=False)["latency_ms"]
        .sum()
        .reset_index()
    )
    return measurements(
        source=NAME,
        model=sums["network"],
        kind=Kind.MODEL,
        device="1080ti",
        stack=Stack.TENSORFLOW_1,
        batch=sums["batch"],
        window=Window.SESSION,
        latency_ms=sums["latency_ms"],
        use=Use.EVALUATE,
        citation=sums["citation"].astype(str) + ", summed",
    )


def _read(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path)
    except FileNotFoundError:
        raise DataError(f"{path} is missing: give the folder with ResPerfNet's measurements") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None


def _rows(path: Path, table: pd.DataFrame, citation: str, device: str) -> pd.DataFrame:
    """Rows of the schema from a table of layers of one kind or several."""
    try:
        return measurements(
            source=NAME,
            model=[_spec(row) for row in table.to_dict("records")],
            kind=Kind.LAYER,
            device=device,
            stack=Stack.TENSORFLOW_1,
            batch=table["batchsize"],
            window=Window.SESSION,
            latency_ms=table["time_median"],
            use=Use.EVALUATE,
            citation=citation,
        )
    except KeyError as error:
        raise DataError(f"{path}: column {error} is missing") from None
    except (ValueError, IndexError) as error:
        raise DataError(f"{path} holds a layer that cannot be read: {error}") from None


def _spec(row: dict) -> str:
    """The layer as :mod:`gnnperf.zoo.layers` spells it; which columns are filled tells its kind."""
    if pd.notna(row.get("poolsize")):
        # Pooling over the whole image is GlobalAveragePooling2D; for all others the files say MaxPooling2D or nothing.
        kind = "average" if "Global" in row.get("operation", "") else "max"
        padding = _PADDINGS[int(row["padding"])]
        sizes = (int(row[name]) for name in ("matsize", "channels_in", "poolsize", "strides"))
        return str(PoolLayer(*sizes, padding, kind))
    activation = "relu" if row["activation_fct"] else None
    if "dim_input" in row:
        return str(DenseLayer(int(row["dim_input"]), int(row["dim_output"]), activation=activation))
    if pd.isna(row["kernelsize"]):
        return str(DenseLayer(int(row["channels_in"]), int(row["channels_out"]), activation=activation))
    sizes = (int(row[name]) for name in ("matsize", "channels_in", "channels_out", "kernelsize", "strides"))
    padding = _PADDINGS[int(row["padding"])]
    return str(ConvLayer(*sizes, padding=padding, bias=bool(row["use_bias"]), activation=activation))
