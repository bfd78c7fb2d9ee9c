"""Is the peak memory right? Beside what was measured, what ran out of memory, and what torch counts on the CPU.

    python scripts/check_memory.py [--data ../shared/data] [--json]

Three tables; docs/memory.md says how they came about:

- VGG16 on a V100 under TensorFlow, as measured (justus2018/vgg16_v100). Nothing was fitted to it.
- Batch sizes that networks trained at on an RTX 3090 (timm) and on single GPUs (lambda_tensorflow), after larger ones
  had run out of memory: the one used has to fit, and the next larger one of the list that was tried must not.
- What torch's autograd keeps of small modules on the CPU, and the peak of its allocations in a training step.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from gnnperf import zoo
from gnnperf.conditions import Conditions, Optimizer, Phase, Precision
from gnnperf.devices import get_device
from gnnperf.errors import GnnperfError
from gnnperf.graph import read_graph
from gnnperf.memory import MemoryEstimate, estimate_memory

_TIMM_SIZES = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""Batch sizes that timm's benchmark.py goes down by when a larger one runs out of memory; it starts with the last."""
_LAMBDA_DEVICES = {"GTX 1080Ti": "1080ti", "RTX 2080Ti": "2080ti", "RTX 3090": "3090", "V100 32GB": "v100-pcie-32gb"}
_LAMBDA_MODELS = {"inception3": "inception_v3", "resnet50": "resnet50", "resnet152": "resnet152", "vgg16": "vgg16"}


def estimate(spec: str, batch: int, device: str, image: int | None = None, **conditions) -> MemoryEstimate:
    """Of an architecture of the zoo."""
    graph = read_graph(zoo.build(spec, batch=batch, image=image))
    return estimate_memory(graph, get_device(device), Conditions(**conditions))


def vgg16(data: Path) -> Iterator[dict]:
    """Measured and estimated MB (10**6 bytes) of VGG16, and what each further image costs."""
    kinds = {
        "FW": {"phase": Phase.INFERENCE},
        "sgd": {"phase": Phase.TRAINING, "optimizer": Optimizer.SGD},
        "adam": {"phase": Phase.TRAINING, "optimizer": Optimizer.ADAM},
    }
    for kind, conditions in kinds.items():
        path = data / "justus2018" / "vgg16_v100" / f"benchmark_VGG16_V100_{kind}_20181022.csv"
        before = None
        for row in _rows(path):
            batch, measured = int(row["batchsize"]), float(row["memory use (MB)"])
            memory = estimate("vgg16", batch, "v100-pcie-32gb", **conditions)
            tensors = (memory.peak_bytes - memory.runtime_bytes) / 1e6
            found = {"run": kind, "batch": batch, "measured_mb": measured, "estimated_mb": tensors}
            if before:
                images = batch - before[0]
                found |= {"measured_mb_per_image": (measured - before[1]) / images}
                found |= {"estimated_mb_per_image": (tensors - before[2]) / images}
            before = (batch, measured, tensors)
            yield found


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream, skipinitialspace=True))


def lowered_batches(data: Path) -> Iterator[dict]:
    """Networks whose batch was lowered, with the share of the device's memory that it and the next larger one take."""
    seen = set()
    for path in sorted((data / "timm").glob("results*/benchmark-train-amp-*rtx3090.csv")):
        for row in _rows(path):
            spec, batch = row["model"], int(row["train_batch_size"])
            image = int(row["train_img_size"])
            if spec not in zoo.names() or batch not in _TIMM_SIZES[:-1] or (spec, image, batch) in seen:
                continue
            seen.add((spec, image, batch))
            larger = _TIMM_SIZES[_TIMM_SIZES.index(batch) + 1]
            conditions = {"phase": Phase.TRAINING, "optimizer": Optimizer.SGD, "precision": Precision.FP16}
            yield _bracket("timm", spec, "3090", batch, larger, image, conditions)
    for row in _rows(data / "lambda_tensorflow" / "tf-train-bs-fp32.csv"):
        device = _LAMBDA_DEVICES.get(row["name_gpu"])
        for column, spec in _LAMBDA_MODELS.items() if device else ():
            batch = int(row[column])
            conditions = {"phase": Phase.TRAINING, "optimizer": Optimizer.SGD}
            yield _bracket("lambda", spec, device, batch, 2 * batch, None, conditions)


def _bracket(source, spec, device, batch, larger, image, conditions) -> dict:
    used, next_larger = (estimate(spec, size, device, image, **conditions) for size in (batch, larger))
    return {
        "source": source,
        "model": spec,
        "device": device,
        "batch": batch,
        "share": used.peak_bytes / used.device_bytes,
        "fits": used.fits,
        "larger": larger,
        "larger_share": next_larger.peak_bytes / used.device_bytes,
        "larger_fits": next_larger.fits,
    }


def torch_on_the_cpu() -> Iterator[dict]:
    """Peak bytes of a training step of small modules, as torch allocates them and as estimated."""
    import torch
    from torch import nn

    from gnnperf.from_torch import read_module

    class Residual(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.inner = nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width),
            )  # fmt: skip

        def forward(self, x):
            return torch.relu(self.inner(x) + x)

    convolutions = [
        layer for _ in range(6) for layer in (nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU())
    ]
    modules = {
        "convolutions": (nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), *convolutions), (8, 3, 48, 48)),
        "residual": (nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), *(Residual(32) for _ in range(4))), (8, 3, 48, 48)),
        "perceptron": (nn.Sequential(*(nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(8))), (256, 512)),
    }
    torch.set_num_threads(1)
    for name, (module, shape) in modules.items():
        for optimizer, make in (("sgd", torch.optim.SGD), ("adam", torch.optim.Adam)):
            graph = read_module(module, torch.zeros(shape))
            conditions = Conditions(phase=Phase.TRAINING, optimizer=Optimizer(optimizer))
            estimated = estimate_memory(graph, get_device("xeon-gold-6226"), conditions).peak_bytes
            measured = _peak_of_a_step(module.train(), shape, make(module.parameters(), lr=1e-3))
            yield {"module": name, "optimizer": optimizer, "torch_bytes": measured, "estimated_bytes": estimated}


def _peak_of_a_step(module, shape: tuple[int, ...], optimizer) -> int:
    """Most bytes that torch's allocator had given out during the second step, with what lived before it."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    def step() -> None:
        module(torch.zeros(shape)).sum().backward()
        optimizer.step()

    step()
    held = [*module.parameters(), *module.buffers()]
    held += [weight.grad for weight in module.parameters()]
    held += [value for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value)]
    before = sum(tensor.untyped_storage().nbytes() for tensor in held)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    live = peak = 0
    for event in _allocations(profiler.profiler.kineto_results.experimental_event_tree()):
        live += event
        peak = max(peak, live)
    return before + peak


def _allocations(roots) -> list[int]:
    """Sizes of the allocations, negative where memory was freed, in the order of time."""
    found, waiting = [], list(roots)
    while waiting:
        event = waiting.pop()
        waiting += event.children
        fields = event.extra_fields
        if hasattr(fields, "alloc_size"):
            found.append((event.start_time_ns, fields.alloc_size))
    return [size for _, size in sorted(found, key=lambda item: item[0])]


def _print(found: dict[str, list[dict]]) -> None:
    for title, rows in found.items():
        print(f"\n{title}\n")
        columns = list(dict.fromkeys(name for row in rows for name in row))
        print("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
        for row in rows:
            print("| " + " | ".join(_cell(row.get(name)) for name in columns) + " |")
    for kind, rows in _by_kind(found["lowered batches"]).items():
        right = sum(bool(row["fits"]) for row in rows), sum(not row["larger_fits"] for row in rows)
        networks = len({row["model"] for row in rows})
        print(f"\n{kind}: {right[0]} of {len(rows)} used sizes fit, {right[1]} larger ones do not; {networks} networks")


def _by_kind(rows: list[dict]) -> dict[str, list[dict]]:
    """By source, VGG apart: it is held out of all that is fitted or chosen."""
    kinds: dict[str, list[dict]] = {}
    for row in rows:
        family = "VGG" if zoo.family(row["model"]) == "vgg" else "others"
        kinds.setdefault(f"{row['source']}, {family}", []).append(row)
    return kinds


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def main() -> None:
    """Check and print; exit code 1 where the measurements are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--json", action="store_true", help="data instead of tables")
    arguments = parser.parse_args()
    try:
        found = {
            "VGG16 on a V100": list(vgg16(arguments.data)),
            "lowered batches": list(lowered_batches(arguments.data)),
            "torch on the CPU": list(torch_on_the_cpu()),
        }
    except (OSError, GnnperfError) as error:
        raise SystemExit(f"error: {error}") from None
    if arguments.json:
        json.dump(found, sys.stdout, indent=2)
    else:
        _print(found)


if __name__ == "__main__":
    main()
