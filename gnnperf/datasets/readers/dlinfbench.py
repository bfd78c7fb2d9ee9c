"""DLInfBench (nicklhy, Apache-2.0): inference at batch 1 to 128 in Caffe, Caffe2, MXNet, PyTorch and TensorFlow.

One text file a framework, network and batch size, ``framework network [precision] batch images/s memory``, for GTX
1080 Ti, GTX 1080 and Titan X (Pascal); upstream's other devices are there as pictures only. CUDA 8, cuDNN 5.1. Speeds
include the copy of randomly filled host memory to the device; none of the drivers pins it. The mean of many batches
without the best and the worst is taken as the median.

Left out: AlexNet in Caffe2, which upstream ran without cuDNN because of a bug.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from gnnperf.conditions import Precision, Stack, Window
from gnnperf.datasets.schema import concatenate, measurements
from gnnperf.errors import DataError

NAME = "dlinfbench"
FILES = ("results/*/*.txt",)
_DEVICES = {"gtx_1080_ti": "1080ti", "gtx_1080": "1080", "titan_x_pascal": "titan-x-pascal"}
_STACKS = {
    "caffe": Stack.CAFFE,
    "caffe2": Stack.CAFFE2,
    "mxnet": Stack.MXNET,
    "pytorch": Stack.PYTORCH_01,
    "tensorflow": Stack.TENSORFLOW_1,
}
# From the RESULT_*.md of each device.
_VERSIONS = {
    ("gtx_1080_ti", "caffe"): "7640f04",
    ("gtx_1080_ti", "mxnet"): "5e9b5e6",
    ("gtx_1080_ti", "tensorflow"): "1.2.1",
    ("gtx_1080", "caffe"): "ffb8ba1",
    ("gtx_1080", "caffe2"): "ed0d0ea",
    ("gtx_1080", "mxnet"): "e02d0cd",
    ("gtx_1080", "tensorflow"): "1.2.0-rc0",
    ("titan_x_pascal", "caffe"): "cd88ec9",
    ("titan_x_pascal", "caffe2"): "df75c7f",
    ("titan_x_pascal", "mxnet"): "5a7aa20",
    ("titan_x_pascal", "tensorflow"): "1.2.0-rc0",
}
_MODELS = {
    "alexnet": "caffe_alexnet",
    "vgg16": "vgg16",
    "vgg19": "vgg19",
    "resnet50": "caffe_resnet50",
    "resnet101": "caffe_resnet101",
    "resnet152": "caffe_resnet152",
    "inception-bn": "inception_bn",
    "inception-v3": "inception_v3",
}
# Each framework ran its own reading of AlexNet and ResNet: PyTorch torchvision's, MXNet its symbols (AlexNet without
# groups, pre-activation ResNets), Caffe the model zoo's. TensorFlow's (slim) ResNets stride as early as none of these;
# Caffe's are the nearest.
_VARIANTS = {
    ("pytorch", "alexnet"): "alexnet@227",
    ("pytorch", "resnet50"): "resnet50",
    ("pytorch", "resnet101"): "resnet101",
    ("pytorch", "resnet152"): "resnet152",
    ("mxnet", "alexnet"): "mxnet_alexnet",
    ("mxnet", "resnet50"): "preact_resnet50",
    ("mxnet", "resnet101"): "preact_resnet101",
    ("mxnet", "resnet152"): "preact_resnet152",
}
_PRECISIONS = {"float32": Precision.FP32, "float16": Precision.FP16}


def read(folder: Path) -> pd.DataFrame:
    """One row a file.

    Raises:
        DataError: a file is in another format, or names a device, framework or network that is not known here.
    """
    rows = []
    for path in sorted(folder.glob(FILES[0])):
        try:
            framework, network, *precision, batch, images_per_second, _memory_mb = path.read_text().split()
            if (framework, network) == ("caffe2", "alexnet"):
                continue
            rows.append(
                {
                    "model": _VARIANTS.get((framework, network)) or _MODELS[network],
                    "device": _DEVICES[path.parent.name],
                    "stack": _STACKS[framework].value,
                    "framework_version": "0.1.12"
                    if framework == "pytorch"
                    else _VERSIONS.get((path.parent.name, framework), ""),
                    "precision": _PRECISIONS[precision[0] if precision else "float32"].value,
                    "batch": int(batch),
                    "latency_ms": int(batch) / float(images_per_second) * 1e3,
                    "citation": path.relative_to(folder).as_posix(),
                }
            )
        except (KeyError, IndexError, ValueError, ZeroDivisionError, UnicodeDecodeError) as error:
            raise DataError(f"{path} is no result of DLInfBench: {error!r}") from None
    if not rows:
        return concatenate([])
    return measurements(source=NAME, window=Window.PAGEABLE_COPY, **pd.DataFrame(rows).to_dict("series"))
