"""timm's own benchmarks (huggingface/pytorch-image-models, Apache-2.0): 1,433 architectures, RTX 3090 to RTX 5090.

One CSV a run of benchmark.py, named by what ran: phase, precision, layout, versions of PyTorch and CUDA, device.
results-history/ holds what later runs replaced upstream. A row is a network at an image size, with as many images as
fitted, 2,048 at most; ``*_step_time`` is the mean over the timed batches, in milliseconds. Input tensors are on the
device already. A training step is forward, loss, backward and SGD with Nesterov momentum.

Read are the runs in PyTorch's eager mode, its own memory layout (NCHW) and mixed precision, which is taken for fp16:
convolutions and matrix products compute in it, while weights are kept, and normalisation, softmax and the update run,
in fp32. Left out: channels_last (NHWC) runs, because rows know no layout; compiled ones ("dynamo"), which are a stack
of their own, and with them every bf16 and every CPU run; rows that ran out of memory at any batch; names that stand for
networks of different size in different runs (their parameters are counted in every row: RepVGG and its like ran
as they train and with their branches merged, ``convnext_tiny_in22ft1k`` ran as ConvNeXt-B once).
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from gnnperf.conditions import Optimizer, Phase, Precision, Stack
from gnnperf.datasets.schema import concatenate, measurements
from gnnperf.errors import DataError
from gnnperf.zoo.timm import PREFIX

NAME = "timm"
GRAPHS_FROM = "scripts/export_timm_graphs.py"
FILES = (
    "results/benchmark-*-amp-nchw-*[!o].csv",  # not those that end in -dynamo
    "results-history/*_nchw_*.csv",
    "results-history/*-nchw-*.csv",
)
_DEVICES = {
    "rtx3090": "3090",
    "rtx4090": "4090",
    "4090": "4090",
    "5090": "5090",
    "pro6000maxq": "rtx-pro-6000-max-q",
}
# Millions of parameters are printed with two digits after the point.
_TOLERANCE, _ROUNDING = 0.002, 0.01
_FILE_NAME = re.compile(
    r"benchmark-(?P<phase>infer|train)-amp-nchw-pt(?P<version>\d{3})-cu\d{3}-(?P<device>\w+)\.csv"
    r"|model_benchmark_amp_nchw_(?P<older_device>\w+)\.csv"
)


def read(folder: Path) -> pd.DataFrame:
    """One row a network, image size and run.

    Raises:
        DataError: a file name or its content is in another format.
    """
    tables = _tables(folder)
    frames = []
    for path, table in tables.items():
        parts = _parts(path)
        training = parts["phase"] == "train"
        frames.append(
            measurements(
                source=NAME,
                model=table["spec"],
                device=_DEVICES[parts["device"] or parts["older_device"]],
                stack=Stack.PYTORCH,
                framework_version=_version(parts["version"]),
                precision=Precision.FP16,
                batch=table["batch_size"].astype(int),
                phase=Phase.TRAINING if training else Phase.INFERENCE,
                optimizer=Optimizer.MOMENTUM if training else Optimizer.NONE,
                latency_ms=table["step_time"],
                citation=path.relative_to(folder).as_posix(),
            )
        )
    return concatenate(frames)


def published_counts(folder: Path) -> pd.DataFrame:
    """What timm counts in every network that is read: ``gmacs`` and ``parameters`` (millions), by specification.

    ``gmacs`` is NaN where no run printed it, and the largest where runs differ: some do not count attention.

    Raises:
        DataError: see :func:`read`, or there are no results.
    """
    tables = _tables(folder)
    if not tables:
        raise DataError(f"{folder} holds no results of timm: give the folder that holds results/")
    table = pd.concat([pd.DataFrame(columns=["gmacs"], dtype=float), *tables.values()])
    return table.groupby("spec").agg(gmacs=("gmacs", "max"), parameters=("param_count", "max"))


def _tables(folder: Path) -> dict[Path, pd.DataFrame]:
    """Rows of every file whose names stand for one network, with their specifications (``spec``)."""
    paths = sorted({path for pattern in FILES for path in folder.glob(pattern)})
    tables = {path: _table(path) for path in paths}
    if not tables:
        return {}
    sizes = pd.concat(list(tables.values())).groupby("spec")["param_count"].agg(["min", "max"])
    one_network = sizes.index[sizes["max"] <= (1 + _TOLERANCE) * sizes["min"] + _ROUNDING]
    return {path: table[table["spec"].isin(one_network)] for path, table in tables.items()}


def _parts(path: Path) -> re.Match:
    parts = _FILE_NAME.fullmatch(path.name)
    if parts is None or (parts["device"] or parts["older_device"]) not in _DEVICES:
        raise DataError(f"{path}: the name does not say which phase and known device it holds")
    return parts


def _version(digits: str | None) -> str:
    """``"113"`` -> ``"1.13"``, ``"291"`` -> ``"2.9.1"``: from 2 on, upstream writes the patch too."""
    if not digits:
        return ""
    return f"1.{digits[1:]}" if digits[0] == "1" else ".".join(digits)


def _table(path: Path) -> pd.DataFrame:
    """Rows that ran, with column names that no longer say the phase."""
    try:
        table = pd.read_csv(path).rename(columns=lambda name: re.sub("^(infer|train)_", "", name))
        table = table.dropna(subset=["model", "img_size", "batch_size", "step_time", "param_count"])
        names, images = table["model"].str.split(".").str[0], table["img_size"].astype(int).astype(str)
        return table.assign(spec=f"{PREFIX}/" + names + "@" + images)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except (AttributeError, KeyError, ValueError) as error:
        raise DataError(f"{path} is no result of timm's benchmark.py: {error}") from None
