"""Time and memory of gnnperf, each beside something that a user knows.

    python scripts/benchmark_speed.py [--only start loop batch size training] [--sizes 10,100,1000] [--json]

- ``start``: whole processes of the command line, beside ``python -c "import torch"``.
- ``loop``: one ResNet-50 file, again and again: reading, featurising, the network; beside onnx.shape_inference on the
  same file, and onnx-tool's profile where that is installed.
- ``batch``: graphs of ResNet-50 in one run of the network.
- ``size``: chains of convolutions, of 10 to 100,000 operators, a fresh process each; beside onnx.shape_inference.
- ``training``: optimisation steps of configs/smoke.yaml; beside importing torch.

Times are CPU time, which others on the machine disturb least; JSON has wall time too. Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

SECTIONS = ("start", "loop", "batch", "size", "training")
SIZES = (10, 100, 1_000, 10_000, 100_000)
_GRAPHS = (1, 4, 16, 64, 256)
_TRAINING_STEPS = 30
_CHANNELS, _IMAGE = 64, 28


class Spent(NamedTuple):
    """Median seconds of CPU and of the wall clock."""

    cpu_s: float
    wall_s: float


def peak_mb() -> float:
    """Most memory that this process has had, in MB."""
    status = Path("/proc/self/status")
    if status.is_file():  # elsewhere, what getrusage says may be the parent's
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def process(command: list[str], repeats: int) -> tuple[Spent, float]:
    """Time, and peak resident memory in MB, of a command in fresh processes."""
    times, peak = [], 0.0
    for _ in range(repeats):
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        times.append((usage.ru_utime + usage.ru_stime, time.perf_counter() - start))
        if status:
            raise SystemExit(f"{' '.join(command)} failed")
        peak = max(peak, usage.ru_maxrss / 1024)
    return _median(times), peak


def call(function: Callable[[], object], repeats: int) -> Spent:
    """Time of a call."""
    times = []
    for _ in range(repeats):
        start = time.process_time(), time.perf_counter()
        function()
        times.append((time.process_time() - start[0], time.perf_counter() - start[1]))
    return _median(times)


def _median(times: list[tuple[float, float]]) -> Spent:
    return Spent(*map(statistics.median, zip(*times, strict=True)))


def record(what: str, spent: Spent, beside: str, known: Spent, peak: float | None = None, share: int = 1) -> dict:
    """One line of the result; ``ratio`` is how many times as long it takes as what a user knows.

    Args:
        what: was measured.
        spent: on it.
        beside: what a user knows.
        known: spent on that.
        peak: memory in MB.
        share: of how many things ``spent`` is; the line is for each.
    """
    return {
        "what": what, "cpu_s": spent.cpu_s / share, "wall_s": spent.wall_s / share, "per_second": share / spent.cpu_s,
        "beside": beside, "beside_cpu_s": known.cpu_s, "ratio": spent.cpu_s / share / known.cpu_s, "peak_mb": peak,
    }  # fmt: skip


def start(path: str, repeats: int) -> Iterator[dict]:
    """Whole processes."""
    python = sys.executable
    known, torch_mb = process([python, "-c", "import torch"], repeats)
    yield record("python -c 'import torch'", known, "import torch", known, torch_mb)
    commands = {
        "gnnperf --version": ["--version"],
        "gnnperf inspect": ["inspect", path],
        "gnnperf predict": ["predict", path, "-d", "1080ti"],
        "gnnperf predict, 8 batch sizes": ["predict", path, "-d", "1080ti", "--batch", "1,2,4,8,16,32,64,128"],
    }
    for what, arguments in commands.items():
        spent, peak = process([python, "-m", "gnnperf", *arguments], repeats)
        yield record(what, spent, "import torch", known, peak)


def loop(path: str, repeats: int) -> Iterator[dict]:
    """Parts of a prediction, in a process that makes many."""
    import onnx

    from gnnperf.conditions import Conditions
    from gnnperf.devices import get_device
    from gnnperf.graph import read_graph, to_arrays
    from gnnperf.predictor import Predictor

    predictor, case = Predictor.load(), (get_device("1080ti"), Conditions())
    graph = read_graph(path)
    arrays = to_arrays(graph)
    known = call(lambda: onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True), repeats)
    parts = {
        "read a file": lambda: read_graph(path),
        "featurise a graph": lambda: to_arrays(graph),
        "network, one graph": lambda: predictor.latencies([arrays], [case]),
        "file to prediction": lambda: predictor.predict_graph(read_graph(path), [case]),
    }
    if importlib.util.find_spec("onnx_tool"):
        parts["onnx-tool's profile"] = lambda: _onnx_tool_profile(path)
    for what, function in parts.items():
        function()  # the first call loads and caches
        yield record(what, call(function, repeats), "shape inference", known)


def _onnx_tool_profile(path: str) -> None:
    import onnx_tool

    with contextlib.redirect_stdout(io.StringIO()):
        onnx_tool.model_profile(path)


def batch(path: str, repeats: int) -> Iterator[dict]:
    """How the network's time for a graph falls with the number of graphs in a run."""
    from gnnperf.conditions import Conditions
    from gnnperf.devices import get_device
    from gnnperf.graph import read_graph, to_arrays
    from gnnperf.predictor import Predictor

    predictor, case = Predictor.load(), (get_device("1080ti"), Conditions())
    arrays = to_arrays(read_graph(path))
    predictor.latencies([arrays], [case])
    known = call(lambda: predictor.latencies([arrays], [case]), 4 * repeats)
    for count in _GRAPHS:
        spent = call(lambda count=count: predictor.latencies([arrays] * count, [case] * count), repeats)
        yield record(f"network, each of {count} graphs", spent, "one at a time", known, peak_mb(), share=count)


def size(sizes: list[int], repeats: int) -> Iterator[dict]:
    """How time and memory grow with the number of operators; a process for each, so that the memory is its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, max_tasks_per_child=1) as pool:
        for operators in sizes:
            yield from pool.submit(_chain_records, operators, repeats).result()


def _chain_records(operators: int, repeats: int) -> list[dict]:
    import onnx

    from gnnperf.conditions import Conditions
    from gnnperf.devices import get_device
    from gnnperf.graph import read_graph, to_arrays
    from gnnperf.predictor import Predictor

    content = chain(operators)
    repeats = max(1, min(repeats, 20_000 // operators))
    predictor, case = Predictor.load(), (get_device("1080ti"), Conditions())
    predictor.predict_graph(read_graph(chain(2)), [case])  # what the first call loads is no matter of size
    known = call(lambda: onnx.shape_inference.infer_shapes(onnx.load_from_string(content), data_prop=True), repeats)
    start_mb = peak_mb()
    graph = read_graph(content)
    arrays = to_arrays(graph)
    parts = {
        "read": lambda: read_graph(content),
        "featurise": lambda: to_arrays(graph),
        "network": lambda: predictor.latencies([arrays], [case]),
        "all": lambda: predictor.predict_graph(read_graph(content), [case]),
    }
    found = [
        record(f"{operators:,} operators: {what}", call(part, repeats), "shape inference", known)
        for what, part in parts.items()
    ]
    found[-1] |= {"peak_mb": peak_mb(), "mb_beyond_shape_inference": peak_mb() - start_mb}
    return found


def chain(operators: int) -> bytes:
    """An ONNX file of so many operators, convolutions and activations in turn; weights are shapes alone."""
    from onnx import TensorProto, helper

    weight = helper.make_tensor_value_info("weight", TensorProto.FLOAT, [_CHANNELS, _CHANNELS, 3, 3])
    tensors = [f"t{number}" for number in range(operators + 1)]
    nodes = [
        helper.make_node("Conv", [before, "weight"], [after], name=after, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        if number % 2 == 0
        else helper.make_node("Relu", [before], [after], name=after)
        for number, (before, after) in enumerate(pairwise(tensors))
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, _CHANNELS, _IMAGE, _IMAGE])
        for name in (tensors[0], tensors[-1])
    ]
    graph = helper.make_graph(nodes, f"chain of {operators}", [ends[0], weight], [ends[1]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return model.SerializeToString()


def training(repeats: int) -> Iterator[dict]:
    """A training's steps; what comes before and after them is not counted."""
    import lightning

    from gnnperf.datasets.importing import published_dataset
    from gnnperf.resources import resource as shipped
    from gnnperf.training.config import TrainingConfig
    from gnnperf.training.fit import fit

    class Clock(lightning.Callback):
        """Time of every step."""

        def __init__(self) -> None:
            self.times: list[tuple[float, float]] = []

        def on_train_batch_start(self, *_: object) -> None:
            self.times.append((time.process_time(), time.perf_counter()))

    known, _ = process([sys.executable, "-c", "import torch"], repeats)
    config = TrainingConfig.from_yaml(shipped("configs/smoke.yaml"))
    steps = config.optimisation.model_copy(update={"steps": _TRAINING_STEPS})
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        fit(config.model_copy(update={"optimisation": steps}), published_dataset(), Path(folder), callbacks=(clock,))
    each = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(clock.times)]
    mix = config.optimisation.batch
    graphs = mix.model + mix.search_space + mix.layer + mix.unlabelled
    what = f"a training step of configs/smoke.yaml, at most {graphs} graphs"
    yield record(what, _median(each), "import torch", known, peak_mb())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=SECTIONS, default=SECTIONS, metavar="SECTION")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="operators, comma-separated")
    parser.add_argument("--json", action="store_true", help="data instead of a table")
    arguments = parser.parse_args()
    sizes = [int(value) for value in arguments.sizes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "resnet50.onnx")
        export = [sys.executable, "-m", "gnnperf", "zoo", "export", "resnet50", "-o", path]
        subprocess.run(export, check=True, capture_output=True)
        run = {
            "start": lambda: start(path, arguments.repeats),
            "loop": lambda: loop(path, 4 * arguments.repeats),
            "batch": lambda: batch(path, arguments.repeats),
            "size": lambda: size(sizes, arguments.repeats),
            "training": lambda: training(arguments.repeats),
        }
        found = []
        for section in (name for name in SECTIONS if name in arguments.only):
            for line in run[section]():
                found.append({"section": section} | line)
                if not arguments.json:
                    print(_text(line), flush=True)
    if arguments.json:
        print(json.dumps(found, indent=2))


def _text(line: dict) -> str:
    memory = f"{line['peak_mb']:7.0f} MB" if line["peak_mb"] is not None else " " * 10
    return (
        f"{line['what']:<58}{1e3 * line['cpu_s']:10.2f} ms {line['per_second']:10.1f} /s {memory} "
        f"{line['ratio']:8.2f} x {line['beside']}"
    )


if __name__ == "__main__":
    main()
