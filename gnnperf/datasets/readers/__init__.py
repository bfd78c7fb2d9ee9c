"""The public sources: where each comes from, how it is read, how many rows it has to give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from gnnperf.datasets.readers import (
    cnn_benchmarks,
    dlinfbench,
    help,
    justus2018,
    lambda_tensorflow,
    neusight,
    published,
    pytorch_gpu_benchmark,
    timm,
    whole_models,
)


@dataclass(frozen=True)
class Source:
    """A public collection of measurements in the form its authors gave it.

    Attributes:
        name: as the command line and the tables call it.
        read: reads the folder with upstream's files into rows of the schema.
        files: patterns, relative to the folder, of every file that is read.
        rows: how many rows the version named in ``upstream`` gives.
        upstream: repository and commit that the checksums and the count belong to.
        licence: of the measurements.
        graphs_from: script that makes the file with its networks' graphs; "" where the zoo builds them.
    """

    name: str
    read: Callable[[Path], pd.DataFrame]
    files: tuple[str, ...]
    rows: int
    upstream: str
    licence: str
    graphs_from: str = ""


READERS: dict[str, Source] = {
    module.NAME: Source(module.NAME, module.read, module.FILES, rows, upstream, licence, *graphs_from)
    for module, rows, upstream, licence, *graphs_from in (
        (help, 451_875, "github.com/HayeonLee/HELP @45f70eb", "MIT"),
        (justus2018, 325_021, "github.com/CDECatapult/ml-performance-prediction @e649f32", "Apache-2.0"),
        (pytorch_gpu_benchmark, 1_448, "github.com/ryujaehun/pytorch-gpu-benchmark @3f47a9e", "MIT"),
        (cnn_benchmarks, 222, "github.com/jcjohnson/cnn-benchmarks @83d441f", "MIT"),
        (dlinfbench, 770, "github.com/nicklhy/DLInfBench @a626be2", "Apache-2.0"),
        (lambda_tensorflow, 100, "github.com/lambdal/lambda-tensorflow-benchmark @c17619d", "BSD-like"),
        (published, 183, "data/published.csv", "per row"),
        (whole_models, 43, "collected, a source in every row", "per row"),
        (neusight, 125, "github.com/sitar-lab/NeuSight @6945927", "MIT"),
        (timm, 15_014, "github.com/huggingface/pytorch-image-models @aa4b585", "Apache-2.0", timm.GRAPHS_FROM),
    )
}
