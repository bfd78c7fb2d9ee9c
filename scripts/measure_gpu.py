"""Time LeNet, AlexNet, VGG16, ResNet-50 and BERT on the GPU of this machine, in every backend that is installed.

    python scripts/measure_gpu.py --device my_gpu.yaml -o gpu.csv

Inference in PyTorch, with the input on the GPU and copied from ordinary memory, in onnxruntime's CUDA provider and in
TensorRT; training steps in PyTorch. Batches 1 to 128, as long as the memory lasts: 240 rows of some five seconds each.
A backend that is not installed is told and left out. A run that was stopped continues with the same command; --trial
takes LeNet alone.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from gnnperf.conditions import Phase, Window
from gnnperf.devices import get_device
from gnnperf.errors import GnnperfError
from gnnperf.measure.cases import Campaign, Case
from gnnperf.measure.models import Network
from gnnperf.measure.protocol import Settings
from gnnperf.measure.rows import MeasuredRow
from gnnperf.measure.run import measure
from gnnperf.measure.runners import require_backends

NETWORKS = ("lenet", "alexnet", "vgg16", "resnet50", "bert_base")
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
RUNS = (
    ("torch-cuda", Window.DEVICE, (Phase.INFERENCE, Phase.TRAINING)),
    ("torch-cuda", Window.PAGEABLE_COPY, (Phase.INFERENCE,)),
    ("onnxruntime-cuda", Window.DEVICE, (Phase.INFERENCE,)),
    ("onnxruntime-cuda", Window.SESSION, (Phase.INFERENCE,)),
    ("tensorrt", Window.DEVICE, (Phase.INFERENCE,)),
)
SETTINGS = Settings(precision=0.01, fewest=20, most_s=2.0, most_warm_up_s=2.0)


def report(case: Case, rows: list[MeasuredRow], problem: str) -> None:
    """One line a case."""
    for row in rows:
        print(f"{row.stack:12} {row.window:14} {case.describe():32} {row.latency_ms:9.3f} ms  {row.quiet_note}")
    if problem:
        print(problem, file=sys.stderr)


def main() -> None:  # noqa: D103
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", required=True, help="name in `gnnperf devices`, or the YAML file that describes it")
    parser.add_argument("-o", "--output", type=Path, default=Path("gpu.csv"))
    parser.add_argument("--trial", action="store_true", help="LeNet at two batch sizes, to see that all is installed")
    options = parser.parse_args()
    try:
        described = get_device(options.device)
        from_file = described.source.startswith("user file")
        device = os.path.relpath(options.device, options.output.parent) if from_file else described.slug
        names, batches = (NETWORKS[:1], BATCHES[:2]) if options.trial else (NETWORKS, BATCHES)
        for backend, window, phases in RUNS:
            networks = [Network(name) for name in names]
            campaign = Campaign(networks, batches, phases, backend=backend, window=window, device=device)
            try:
                require_backends(campaign)
            except (GnnperfError, ModuleNotFoundError) as error:
                print(f"{backend} left out: {error}", file=sys.stderr)
                continue
            measure(campaign.cases(), options.output, SETTINGS, after=report)
    except GnnperfError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted: the same command continues")


if __name__ == "__main__":
    main()
