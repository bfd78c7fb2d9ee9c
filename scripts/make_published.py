"""Write data/published.csv (and data/sources.json) from the public sources.

    python scripts/make_published.py FOLDER

FOLDER holds one folder a source, as `gnnperf data import all` takes it. Published are all fp32 rows of whole networks
on the GTX 1080 Ti that the readers of dlinfbench, pytorch_gpu_benchmark, cnn_benchmarks and whole_models give for the
headline families, and for the others those of one batch size each in dlinfbench and all of the rest.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd

from gnnperf.datasets.checksums import source_files
from gnnperf.datasets.importing import read_source
from gnnperf.datasets.readers import READERS
from gnnperf.datasets.readers.published import CSV_COLUMNS
from gnnperf.datasets.schema import concatenate
from gnnperf.datasets.splits import HEADLINE_FAMILIES

DEVICE = "1080ti"
SOURCES = ("dlinfbench", "pytorch_gpu_benchmark", "cnn_benchmarks", "whole_models")
# Of the other families, DLInfBench gives every stack at eight batch sizes: two tell what there is to tell.
DLINFBENCH_BATCHES = (1, 16)


def folder_of(name: str, parent: Path) -> Path:
    """Folder with a source's files; whole_models.csv lies loose."""
    return parent if name == "whole_models" else parent / name


def write_checksums(parent: Path, path: Path) -> None:
    """Checksums of the files of every source that has been fetched."""
    sources = {
        name: source_files(source, folder_of(name, parent)) for name, source in READERS.items() if name != "published"
    }
    path.write_text(json.dumps(sources, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


def select(parent: Path) -> pd.DataFrame:
    """The rows to publish."""
    frame = concatenate([read_source(READERS[name], folder_of(name, parent)) for name in SOURCES])
    frame = frame[(frame["device"] == DEVICE) & (frame["precision"] == "fp32")]
    headline = frame["family"].isin(HEADLINE_FAMILIES)
    few = (frame["source"] != "dlinfbench") | frame["batch"].isin(DLINFBENCH_BATCHES)
    frame = frame[headline | few]
    return frame.sort_values(["source", "model", "phase", "stack", "batch"], kind="stable")


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    data = Path(__file__).resolve().parents[1] / "data"
    write_checksums(folder, data / "sources.json")
    frame = select(folder)
    frame[list(CSV_COLUMNS)].round({"latency_ms": 5, "spread_ms": 5}).to_csv(data / "published.csv", index=False)
    print(f"{len(frame)} rows, {frame['family'].isin(HEADLINE_FAMILIES).sum()} of them of the headline families")


if __name__ == "__main__":
    main()
