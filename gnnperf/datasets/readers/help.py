"""HELP (HayeonLee/HELP, MIT): whole-network inference in three search spaces, PyTorch, on GPUs and Xeon CPUs.

Lee et al., "HELP: Hardware-adaptive Efficient Latency Prediction for NAS via Meta-Learning", NeurIPS 2021.
NAS-Bench-201 (15,625 networks, 3x32x32 input), FBNet as in HW-NAS-Bench (5,000, 3x32x32) and OFA-MobileNetV3 (5,000,
resolution as sampled); one file a device and batch size, milliseconds in the order of the architecture list.

Left out, because they mislead more than they teach: the phones (rounded to whole milliseconds, or with minima of
0.01 ms), the Raspberry Pi (likewise broken rows), and Eyeriss and the FPGA (modelled, not measured). The CPU files name
no batch size; like HW-NAS-Bench they are taken as batch 1. "titanx" is taken as the Pascal card: it is 9 % slower than
the 1080 Ti at batch 256, where the Maxwell card would be 70 % slower.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from gnnperf.conditions import Stack, Window
from gnnperf.datasets.schema import concatenate, measurements
from gnnperf.datasets.unpickle import load_torch_archive
from gnnperf.errors import DataError, GnnperfError

NAME = "help"
_DEVICES = {
    "1080ti": "1080ti",
    "2080ti": "2080ti",
    "titanx": "titan-x-pascal",
    "titanxp": "titan-xp",
    "titan_xp": "titan-xp",
    "titan_rtx": "titan-rtx",
    "v100": "v100-pcie",
    "gold_6226": "xeon-gold-6226",
    "gold_6240": "xeon-gold-6240",
    "silver_4114": "xeon-silver-4114",
    "silver_4210r": "xeon-silver-4210r",
}
_GPUS = ("1080ti", "2080ti", "titanx", "titanxp", "titan_rtx")
_CPUS = ("gold_6226", "gold_6240", "silver_4114", "silver_4210r")
_LATENCIES = {
    "nasbench201": [f"{gpu}_{batch}" for gpu in _GPUS for batch in (1, 32, 256)] + list(_CPUS),
    "fbnet": [f"{gpu}_{batch}" for gpu in _GPUS for batch in (1, 32, 64)] + list(_CPUS),
    "ofa": [f"{gpu}_{batch}" for gpu in ("2080ti", "titan_rtx", "titan_xp", "v100") for batch in (1, 32, 64)],
}
_ARCHITECTURES = {
    "nasbench201": "nasbench201/str_arch2idx.pt",
    "fbnet": "fbnet/metainfo.pt",
    "ofa": "ofa/ofa_archs.pt",
}
FILES = tuple(
    name
    for space, latencies in _LATENCIES.items()
    for name in (_ARCHITECTURES[space], *(f"{space}/latency/{latency}.pt" for latency in latencies))
)


def read(folder: Path) -> pd.DataFrame:
    """Rows of the three search spaces.

    Raises:
        DataError: a file is missing, damaged or of another length than its list of architectures.
    """
    frames = []
    for space, latencies in _LATENCIES.items():
        models = pd.Categorical(_models(space, load_torch_archive(folder / _ARCHITECTURES[space]), folder))
        for name in latencies:
            citation = f"{space}/latency/{name}.pt"
            values = np.asarray(load_torch_archive(folder / citation), float)
            if values.shape != (len(models),):
                raise DataError(f"{folder / citation}: {len(models)} latencies expected, shape {values.shape} found")
            device, batch = (name, 1) if name in _CPUS else (name.rpartition("_")[0], int(name.rpartition("_")[2]))
            frames.append(
                measurements(
                    source=NAME,
                    model=models,
                    device=_DEVICES[device],
                    stack=Stack.PYTORCH,
                    batch=batch,
                    latency_ms=values,
                    window=Window.DEVICE,
                    citation=citation,
                )
            )
    return concatenate(frames)


def _models(space: str, architectures: dict, folder: Path) -> list[str]:
    """Zoo specifications in the order of the latency files."""
    from gnnperf.zoo import fbnet, nasbench201, ofa

    try:
        if space == "nasbench201":
            ordered = sorted(architectures, key=architectures.__getitem__)
            return [nasbench201.from_arch_string(text) for text in ordered]
        if space == "fbnet":
            return [fbnet.spec(item["op_idx_list"]) for item in architectures["arch"]]
        return [ofa.spec(item["ks"], item["e"], item["d"], item["r"]) for item in architectures["arch"]]
    except (GnnperfError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{folder / _ARCHITECTURES[space]} holds no list of {space} architectures: {error}") from None
