"""Fixtures for every test."""

import signal
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(autouse=True)
def _without_graph_cache(monkeypatch):
    """No test reads or writes the user's cache of graphs."""
    monkeypatch.setenv("GNNPERF_CACHE", "off")


@pytest.fixture(autouse=True, scope="session")
def _with_ctrl_c():
    """A shell that starts tests in the background makes them, and what they start, deaf to Ctrl-C, which some test."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def shared() -> Path:
    """Folder of the raw public measurements and real ONNX files; a clone alone does not have it."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared (raw measurements and real ONNX files), which is not here")
    return SHARED


@pytest.fixture(scope="session")
def tiny_dataset():
    """Rows of six networks, a search space and layers, each 1.5 to 2.5 times its roofline bound; in memory."""
    import numpy as np

    from gnnperf.datasets.dataset import Dataset
    from gnnperf.datasets.graph_building import build_arrays
    from gnnperf.datasets.graph_store import GraphStore
    from gnnperf.datasets.schema import Kind, concatenate, measurements
    from gnnperf.devices import get_device
    from gnnperf.devices.roofline import graph_roofline_ms

    kinds = {
        Kind.MODEL: ["squeezenet1_1", "resnet18", "densenet121", "alexnet", "vgg11", "lenet5"]
        + [f"nasbench201/{cell}" for cell in ("012340", "111111", "222222", "333333", "012012", "321321")],
        Kind.LAYER: ["conv/i28-c32-f64-k3-s1-same", "dense/c512-f1000"],
    }
    frames, store = [], GraphStore()
    for kind, models in kinds.items():
        for model in models:
            arrays = build_arrays(model)
            for phase, passes in (("inference", 1.5), ("training", 2.5 * 3)):
                for device in ("1080ti", "v100-pcie-32gb"):
                    batches = [1, 8]
                    bounds = [graph_roofline_ms(arrays.at_batch(batch), get_device(device)) for batch in batches]
                    frame = measurements(
                        source=f"campaign-{device}", model=[model] * 2, device=device, stack="pytorch", batch=batches,
                        latency_ms=passes * np.array(bounds) + 0.1, citation="made", phase=phase, kind=kind,
                    )  # fmt: skip
                    frames.append(frame.assign(graph_key=store.add(arrays)))
    return Dataset(None, concatenate(frames), store)
