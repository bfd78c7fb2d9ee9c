"""cnn-benchmarks (jcjohnson, MIT): Torch7 with cuDNN, batch 16, forward and backward, Pascal and Maxwell GPUs.

One JSON a run: ten passes, seconds, input already on the device. Networks are in training mode, there is neither a
loss nor an update; "training" rows are the sum of both passes as upstream timed it. Runs without cuDNN and on the CPU
are left out: nobody runs them so, and nothing in a row would tell them apart.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from gnnperf.conditions import Phase, Stack
from gnnperf.datasets.schema import concatenate, measurements
from gnnperf.errors import DataError

NAME = "cnn_benchmarks"
FILES = ("outputs/*/*.json",)
_DEVICES = {
    "GeForce GTX 1080 Ti": "1080ti",
    "GeForce GTX 1080": "1080",
    "TITAN X": "titan-x-pascal",
    "GeForce GTX TITAN X": "titan-x-maxwell",
}
# AlexNet, VGG and GoogLeNet were converted from Caffe's model zoo (AlexNet is missing exactly from the runs without
# cuDNN, where Torch7 has no grouped convolutions: it is the two-group network). ResNets are those of fb.resnet.torch,
# which stride in the 3x3 convolution as torchvision does;
# the one of 200 layers is pre-activation. GoogLeNet has local response normalisation where the zoo's has batch
# normalisation.
_MODELS = {
    "alexnet": "caffe_alexnet@224",
    "vgg16": "vgg16",
    "vgg19": "vgg19",
    "googlenet-v1": "googlenet",
    "resnet-18": "resnet18",
    "resnet-34": "resnet34",
    "resnet-50": "resnet50",
    "resnet-101": "resnet101",
    "resnet-152": "resnet152",
    "resnet-200": "preact_resnet200",
}
_IMAGE = 224
_PHASES = {"forward_times": Phase.FORWARD, "backward_times": Phase.BACKWARD, "total_times": Phase.TRAINING}


def read(folder: Path) -> pd.DataFrame:
    """Three rows a run with cuDNN: forward, backward and both; medians over the passes.

    Raises:
        DataError: a file is damaged, or names a network or device that is not known here.
    """
    frames = []
    for path in sorted(folder.glob(FILES[0])):
        try:
            run = json.loads(path.read_text())
            options = run["opt"]
            if not options.get("use_cudnn"):
                continue
            if options["image_height"] != _IMAGE or options["image_width"] != _IMAGE:
                raise ValueError(f"images of another size than {_IMAGE} pixels")
            times_ms = [np.asarray(run[name], float) * 1e3 for name in _PHASES]
            frames.append(
                measurements(
                    source=NAME,
                    model=_MODELS[Path(options["model_t7"]).stem],
                    device=_DEVICES[run["gpu_name"]],
                    stack=Stack.TORCH7,
                    framework_version=f"cuDNN {run['cudnn_version']}",
                    batch=options["batch_size"],
                    phase=[phase.value for phase in _PHASES.values()],
                    latency_ms=[np.median(times) for times in times_ms],
                    spread_ms=[np.std(times, ddof=1) for times in times_ms],
                    repeats=[len(times) for times in times_ms],
                    citation=path.relative_to(folder).as_posix(),
                )
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path} is damaged or no run of cnn-benchmarks: {error!r}") from None
    return concatenate(frames)
