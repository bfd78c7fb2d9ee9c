"""pytorch-gpu-benchmark (ryujaehun, MIT): torchvision networks, batch 12, fp32, fp16 and fp64, six GPUs.

One CSV a device, precision and phase: a column a network, a row a timed batch of 3x224x224 images. The timed window
holds ``model(images.to("cuda"))``, so it includes the copy of the input from ordinary memory. A training step is
forward, loss and backward; no optimizer runs. Only files of a single GPU are read.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from gnnperf.conditions import Optimizer, Phase, Precision, Stack, Window
from gnnperf.datasets.schema import concatenate, measurements
from gnnperf.errors import DataError

NAME = "pytorch_gpu_benchmark"
FILES = ("new_results/*_benchmark.csv", "results/*/*_benchmark*.csv")
_BATCH = 12
_DEVICES = {
    "GeForce GTX 1080 Ti": "1080ti",
    "GeForce RTX 2080 Ti": "2080ti",
    "TITAN Xp": "titan-xp",
    "TITAN RTX": "titan-rtx",
    "TITAN V": "titan-v",
    "A100-SXM4-40GB": "a100-sxm-40gb",
}
_PRECISIONS = {
    "single": Precision.FP32,
    "float": Precision.FP32,
    "half": Precision.FP16,
    "double": Precision.FP64,
}
_FILE_NAME = re.compile(
    r"(?P<device>.+?)_(?:(?P<gpus>\d)_gpus__)?(?P<precision>single|float|half|double)_model_"
    r"(?P<phase>inference|train|training)_benchmark(?:\(\d\))?\.csv"
)
# The 2018 runs used a nightly of PyTorch 1.0; later ones do not all say, the README names 1.4.
_VERSIONS = {"1080TI": "1.0.0a0+2cbcaf4", "TitanV": "1.0.0a0+2cbcaf4", "new_results": "1.4"}


def read(folder: Path) -> pd.DataFrame:
    """One row a network and single-GPU file: the median over the timed batches.

    Raises:
        DataError: a file name or its content is in another format.
    """
    frames = []
    for path in sorted(path for pattern in FILES for path in folder.glob(pattern)):
        parts = _FILE_NAME.fullmatch(path.name)
        if parts is None or parts["device"] not in _DEVICES:
            raise DataError(f"{path}: the name does not say which of the known devices and precisions it holds")
        if parts["gpus"] not in (None, "1"):
            continue
        try:
            table = pd.read_csv(path, dtype=float)
        except ValueError as error:
            raise DataError(f"{path}: {error}") from None
        frames.append(
            measurements(
                source=NAME,
                model=list(table.columns),
                device=_DEVICES[parts["device"]],
                stack=Stack.PYTORCH,
                framework_version=_VERSIONS.get(path.parent.name, ""),
                precision=_PRECISIONS[parts["precision"]],
                batch=_BATCH,
                phase=Phase.INFERENCE if parts["phase"] == "inference" else Phase.TRAINING,
                window=Window.PAGEABLE_COPY,
                optimizer=Optimizer.NONE,
                latency_ms=table.median().to_numpy(),
                spread_ms=table.std().to_numpy(),
                repeats=len(table),
                citation=path.relative_to(folder).as_posix(),
            )
        )
    return concatenate(frames)
