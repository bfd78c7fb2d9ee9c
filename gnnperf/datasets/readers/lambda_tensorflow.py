"""Lambda's TensorFlow benchmark (lambdal, BSD-like): training throughput of tf_cnn_benchmarks, many GPUs.

Two CSVs a precision, images/s and the batch size of a run, a row a machine. Synthetic data on the device; a step is
forward, loss, backward and SGD. Whether XLA was on is unknown (the README turns its auto-jit on).

Left out: machines with several GPUs; the GTX 1080 Ti, whose logs :mod:`whole_models` reads with all their digits;
fp32 on Ampere, where nobody says whether TensorFlow rounded to TF32; a throughput of 0 (out of memory).
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from gnnperf.conditions import Optimizer, Phase, Precision, Stack
from gnnperf.datasets.schema import concatenate, measurements
from gnnperf.errors import DataError

NAME = "lambda_tensorflow"
FILES = (
    "tf-train-throughput-fp32.csv",
    "tf-train-bs-fp32.csv",
    "tf-train-throughput-fp16.csv",
    "tf-train-bs-fp16.csv",
)
_DEVICES = {
    "RTX 2080Ti": "2080ti",
    "RTX 8000": "rtx-8000",
    "V100 32GB": "v100-pcie-32gb",
    "RTX 2080 SUPER MAX-Q": "2080-super-max-q",
    "RTX 2070 MAX-Q": "2070-max-q",
    "RTX 2080 MAX-Q": "2080-max-q",
    "RTX 3080": "3080",
    "RTX 3090": "3090",
    "RTX A6000": "a6000",
    "Lambda Cloud — RTX A6000": "a6000",
    "A100 40GB PCIe": "a100-pcie-40gb",
}
_AMPERE = ("3080", "3090", "a6000", "a100-pcie-40gb")
# Networks of tf_cnn_benchmarks by their names there; its ResNets stride in the first 1x1 convolution, as Caffe's do.
MODELS = {
    "alexnet": "tf_alexnet",
    "inception3": "inception_v3",
    "inception4": "inception_v4",
    "resnet50": "caffe_resnet50",
    "resnet152": "caffe_resnet152",
    "vgg16": "vgg16",
}


def read(folder: Path) -> pd.DataFrame:
    """One row a machine with one GPU, network and precision.

    Raises:
        DataError: a file is missing or in another format.
    """
    frames = []
    for precision in (Precision.FP32, Precision.FP16):
        citation = f"tf-train-throughput-{precision}.csv"
        throughput, batch = _table(folder / citation), _table(folder / f"tf-train-bs-{precision}.csv")
        for machine in throughput.index.intersection(_DEVICES, sort=False):
            device = _DEVICES[machine]
            if precision == Precision.FP32 and device in _AMPERE:
                continue
            ran = throughput.loc[machine, list(MODELS)].astype(float)
            ran = ran[ran > 0]
            batches = batch.loc[machine, ran.index].astype(int)
            frames.append(
                measurements(
                    source=NAME,
                    model=[MODELS[name] for name in ran.index],
                    device=device,
                    stack=Stack.TENSORFLOW_2,
                    precision=precision,
                    batch=batches.to_numpy(),
                    phase=Phase.TRAINING,
                    optimizer=Optimizer.SGD,
                    latency_ms=(batches / ran * 1e3).to_numpy(),
                    citation=f"{citation}: {machine}",
                )
            )
    return concatenate(frames)


def _table(path: Path) -> pd.DataFrame:
    try:
        table = pd.read_csv(path)
        table = table[table["num_gpu"] == 1].set_index("name_gpu")
        table[list(MODELS)]
        return table
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except (KeyError, ValueError) as error:
        raise DataError(f"{path} is no table of Lambda's benchmark: {error}") from None
