"""Whole-model timings collected from papers, READMEs, logs and issues into one CSV, a source in every row.

Only rows that no other reader has are taken: Lambda's logs for the GTX 1080 Ti (synthetic data on the device; the
"real" runs wait for the disk), PaddlePaddle's LeNet in TensorRT, MXNet's deepmark figures, and VGG16 in four
frameworks by aizvorski. Rows of DLInfBench, pytorch-gpu-benchmark and cnn-benchmarks would be the same timings twice.

Rows without a licence may be evaluated on, not trained on. What PaddlePaddle's window holds is in doubt: its author
says execution only, yet batch 32 takes seven times as long as batch 8.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from gnnperf.conditions import Optimizer, Phase, Stack
from gnnperf.datasets.readers.lambda_tensorflow import MODELS as LAMBDA_MODELS
from gnnperf.datasets.schema import Use, concatenate, measurements
from gnnperf.errors import DataError

NAME = "whole_models"
FILES = ("whole_models.csv",)
_DEVICES = {
    "GeForce GTX 1080 Ti": "1080ti",
    "GeForce GTX 1080": "1080",
    "Titan X (Pascal)": "titan-x-pascal",
}
_LAMBDA = "lambdal/lambda-tensorflow-benchmark"
_PADDLE = "PaddlePaddle/Paddle"
_SOURCES = (_LAMBDA, _PADDLE, "dmlc.github.io (MXNet blog)", "aizvorski/vgg-benchmarks")
_STACKS = {
    "tensorrt": Stack.TENSORRT,
    "mxnet": Stack.MXNET,
    "caffe": Stack.CAFFE,
    "neon": Stack.NEON,
    "keras-tensorflow": Stack.TENSORFLOW_1,
    "keras-theano": Stack.THEANO,
    "tensorflow": Stack.TENSORFLOW_2,
}
# deepmark's VGG is configuration D, its ResNet has 50 layers.
_MODELS = {
    "vgg (deepmark)": "vgg16",
    "inceptionv3 (deepmark)": "inception_v3",
    "resnet (deepmark)": "resnet50",
    "vgg16": "vgg16",
}
_COLUMNS = ("source_repo", "source_path", "device", "framework", "framework_version", "precision", "model", "batch",
            "phase", "value", "unit", "how_measured")  # fmt: skip


def read(folder: Path) -> pd.DataFrame:
    """Rows of ``folder / "whole_models.csv"`` (or of the file itself) that belong to no other reader.

    Raises:
        DataError: the file is missing or in another format, or a row names something that is not known here.
    """
    path = folder / FILES[0] if folder.is_dir() else folder
    try:
        table = pd.read_csv(path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise DataError(f"{path} is no CSV: {error}") from None
    missing = [name for name in _COLUMNS if name not in table]
    if missing:
        raise DataError(f"{path}: columns missing: {', '.join(missing)}")
    table = table[table["source_repo"].isin(_SOURCES)]
    ours = (table["source_repo"] != _LAMBDA) | table["how_measured"].str.contains("synthetic", regex=False)
    rows = [_row(row, path) for row in table[ours].to_dict("records")]
    return measurements(source=NAME, **pd.DataFrame(rows).to_dict("series")) if rows else concatenate([])


def _row(row: dict, path: Path) -> dict:
    source = row["source_repo"]
    try:
        if row["unit"] != "ms/batch":
            raise KeyError(row["unit"])
        if source == _PADDLE:
            model = "lenet_paddle"
        else:
            model = (LAMBDA_MODELS if source == _LAMBDA else _MODELS)[row["model"]]
        training = {"train_step": True, "inference": False}[row["phase"]]
        return {
            "model": model,
            "device": _DEVICES[row["device"]],
            "stack": _STACKS[row["framework"]].value,
            "framework_version": str(row["framework_version"]),
            "precision": row["precision"],
            "batch": row["batch"],
            "phase": (Phase.TRAINING if training else Phase.INFERENCE).value,
            "optimizer": (Optimizer.SGD if training else Optimizer.NONE).value,
            "latency_ms": row["value"],
            "use": (Use.TRAIN if source == _LAMBDA else Use.EVALUATE).value,
            "citation": f"{source}: {row['source_path']}",
        }
    except KeyError as error:
        raise DataError(f"{path}: {error} is not known here, in the row from {source}, {row['source_path']}") from None
