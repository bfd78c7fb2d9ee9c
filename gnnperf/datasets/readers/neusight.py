"""NeuSight's labels (sitar-lab, MIT): transformers of Hugging Face end to end in PyTorch, fp32, nine GPUs.

One table: device, network, phase, sequence length, batch and milliseconds. A training step is forward, loss and
backward, whose times are given apart too; no optimizer runs. Networks are named as upstream's configurations:
``gpt3_27`` is GPT-3 2.7B, ``opt_13`` OPT-1.3B, and BERT-Large has its language model head.

Left out: Switch Transformer, whose experts are not in the zoo; compiled runs ("fusion"), which are a stack of their
own; runs on four GPUs; the four training steps (MI210, MI250) whose forward pass takes longer than their backward pass,
which it does nowhere else: it is 1.7 to 3 times what inference takes there.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from gnnperf.conditions import Phase, Stack
from gnnperf.datasets.schema import concatenate, measurements
from gnnperf.errors import DataError

NAME = "neusight"
FILES = ("e2e_latency_ms.csv",)
_DEVICES = {
    "AMD_Instinct_MI100": "mi100",
    "AMD_Instinct_MI210": "mi210",
    "AMD_Instinct_MI250": "mi250",
    "NVIDIA_A100-PCIE-40GB": "a100-pcie-40gb",
    "NVIDIA_A100-SXM4-40GB": "a100-sxm-40gb",
    "NVIDIA_A100_80GB_PCIe": "a100-pcie-80gb",
    "Tesla_P100-PCIE-16GB": "p100-pcie",
    "Tesla_P4": "p4",
    "Tesla_T4": "t4",
    "Tesla_V100-PCIE-32GB": "v100-pcie-32gb",
}
_MODELS = {
    "bert_large": "bert_large?head=lm",
    "gpt2_large": "gpt2_large?head=lm",
    "gpt3_xl": "gpt3_xl?head=lm",
    "gpt3_27": "gpt3_2_7b?head=lm",
    "opt_13": "opt_1_3b?head=lm",
}
_NOT_READ = ("switchxl4",)
_TIMES = {Phase.INFERENCE: "e2e_ms", Phase.TRAINING: "e2e_ms", Phase.FORWARD: "fw_ms", Phase.BACKWARD: "bwall_ms"}


def read(folder: Path) -> pd.DataFrame:
    """One row an inference, three a training step.

    Raises:
        DataError: the table is missing, in another format, or names an unknown device, network or phase.
    """
    path = folder / FILES[0]
    try:
        table = pd.read_csv(path, dtype={"option": str, "phase": str})  # "inf" is no number
        plain = table[table["option"].isna() & ~table["model"].isin(_NOT_READ)]
        inference = plain[plain["phase"] == "inf"]
        training = plain[(plain["phase"] == "train") & (plain["fw_ms"] <= plain["bwall_ms"])]
        if not plain["phase"].isin(["inf", "train"]).all():
            raise ValueError("phases other than inf and train")
        return concatenate(
            [
                measurements(
                    source=NAME,
                    model=[f"{_MODELS[row.model]}&seq={row.seqlen}" for row in part.itertuples()],
                    device=[_DEVICES[device] for device in part["device"]],
                    stack=Stack.PYTORCH,
                    batch=part["batch"].to_numpy(),
                    phase=phase,
                    latency_ms=part[_TIMES[phase]].to_numpy(),
                    citation=[f"{FILES[0]}: {file}" for file in part["file"]],
                )
                for phase, part in (
                    (Phase.INFERENCE, inference),
                    (Phase.TRAINING, training),
                    (Phase.FORWARD, training),
                    (Phase.BACKWARD, training),
                )
            ]
        )
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except (KeyError, ValueError) as error:
        raise DataError(f"{path} is no table of NeuSight's labels: {error}") from None
