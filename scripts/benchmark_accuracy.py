"""The accuracy benchmark from a clean checkout beside the raw data: imports what it needs, then ``gnnperf benchmark``.

    python scripts/benchmark_accuracy.py [--raw ../shared/data] [any option of `gnnperf benchmark`]

Imports the sources into gnnperf-data unless that is there already (some minutes), takes ResPerfNet's measurements from
RAW/resperfnet, and writes benchmark.csv, benchmark.md and benchmark.png into runs/benchmark beside what was fitted.
Without RAW it does what the files that ship with gnnperf allow, and says what is missing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from gnnperf.cli.dataset_option import DEFAULT_DATA
from gnnperf.datasets.dataset import MEASUREMENTS_FILE

OUTPUT = Path("runs/benchmark")
FOLDS = Path("runs/evaluate/families")
DEVICE_FOLDS = Path("runs/evaluate/devices")


def import_sources(raw: Path) -> None:
    """All sources that the folder has, by `gnnperf data import`; one that is there already is not read again."""
    if not (DEFAULT_DATA / MEASUREMENTS_FILE).is_file():
        subprocess.run([sys.executable, "-m", "gnnperf", "data", "import", "all", str(raw)], check=True)


def main() -> None:
    """Import, then run the command with the options that the folders allow; those given come last and win."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("--raw", type=Path, default=shared, help="folder with a folder a source")
    arguments, options = parser.parse_known_args()

    command = [sys.executable, "-m", "gnnperf", "benchmark", "--cache", str(OUTPUT)]
    for name in ("csv", "markdown", "plot"):
        ending = {"csv": "csv", "markdown": "md", "plot": "png"}[name]
        command += [f"--{name}", str(OUTPUT / f"benchmark.{ending}")]
    OUTPUT.mkdir(parents=True, exist_ok=True)
    if arguments.raw.is_dir():
        import_sources(arguments.raw)
        command += ["--data", str(DEFAULT_DATA), "--resperfnet", str(arguments.raw / "resperfnet")]
    for option, folder in (("--folds", FOLDS), ("--device-folds", DEVICE_FOLDS)):
        if folder.is_dir():
            command += [option, str(folder)]
    sys.exit(subprocess.run([*command, *options]).returncode)


if __name__ == "__main__":
    main()
