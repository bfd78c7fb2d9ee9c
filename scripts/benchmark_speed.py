"""Time and memory of the predict path, each beside something that a user knows.

    python scripts/benchmark_speed.py [--repeats 5]

Prints, for a ResNet-50 file: a whole ``gnnperf predict`` process, ``python -c "import torch"``, peak memory of both,
and the parts inside a loop (reading, featurising, running the network).
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def process(command: list[str], repeats: int) -> tuple[float, float]:
    """Median wall time in seconds and peak resident memory in MB of a command, in fresh processes."""
    seconds, peak = [], 0.0
    for _ in range(repeats):
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        seconds.append(time.perf_counter() - start)
        if status:
            raise SystemExit(f"{' '.join(command)} failed")
        peak = max(peak, usage.ru_maxrss / 1024)
    return statistics.median(seconds), peak


def rate(function, seconds: float = 2.0) -> float:
    """Calls per second."""
    function()
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        function()
        calls += 1
    return calls / (time.perf_counter() - start)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "resnet50.onnx")
        python = sys.executable
        subprocess.run(
            [python, "-m", "gnnperf", "zoo", "export", "resnet50", "-o", path], check=True, stdout=subprocess.DEVNULL
        )
        predict_s, predict_mb = process([python, "-m", "gnnperf", "predict", path, "-d", "1080ti"], repeats)
        print(f"gnnperf predict, whole process   {predict_s:6.2f} s  {predict_mb:6.0f} MB")
        try:
            torch_s, torch_mb = process([python, "-c", "import torch"], repeats)
            print(f"import torch, whole process      {torch_s:6.2f} s  {torch_mb:6.0f} MB")
            print(f"ratio                            {predict_s / torch_s:6.2f}    {predict_mb / torch_mb:6.2f}")
        except SystemExit:
            print("import torch                     not installed here")

        from gnnperf.conditions import Conditions
        from gnnperf.devices import get_device
        from gnnperf.graph import read_graph, to_arrays
        from gnnperf.predictor import Predictor

        predictor, case = Predictor.load(), (get_device("1080ti"), Conditions())
        graph = read_graph(path)
        arrays = to_arrays(graph)
        print(f"read a file                      {rate(lambda: read_graph(path)):6.0f} /s")
        print(f"featurise a graph                {rate(lambda: to_arrays(graph)):6.0f} /s")
        print(f"network, one graph               {rate(lambda: predictor.latencies([arrays], [case])):6.0f} /s")
        many = rate(lambda: predictor.latencies([arrays] * 64, [case] * 64)) * 64
        print(f"network, 64 graphs together      {many:6.0f} /s")
        whole = rate(lambda: predictor.predict_graph(read_graph(path), [case]))
        print(f"file to prediction               {whole:6.0f} /s")
        print(f"peak memory of this process      {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:6.0f} MB")


if __name__ == "__main__":
    main()
