"""What a predicted latency may never do when a device gets better, whatever the graph and the device.

Properties of the shipped network, not of its code: its corrections see the device, so each new one has to be tested.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnperf import zoo
from gnnperf.conditions import Conditions, Phase, Precision, Stack, Window
from gnnperf.devices import Device, DeviceKind, list_devices
from gnnperf.devices.user_file import vary
from gnnperf.graph import read_graph, to_arrays
from gnnperf.predictor import Predictor

NETWORKS = (
    "resnet18", "mobilenet_v2", "densenet121", "squeezenet1_1", "lenet5", "vgg11", "efficientnet_b0",
    "bert?layers=2&hidden=256&heads=4&seq=64", "nasbench201/012340", "nasbench201/222222",
    "conv/i56-c64-f128-k3-s1-same-bias-relu", "dense/c4096-f1000",
)  # fmt: skip
GPUS = tuple(device for device in list_devices() if device.kind == DeviceKind.GPU)
ROUNDING = 1e-5  # of sums in float32
# Another number of multiprocessors tiles a product into other waves, and the corrections see that.
WAVES = 0.01


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return Predictor.load()


@pytest.fixture(scope="module")
def graphs() -> dict:
    return {name: to_arrays(read_graph(zoo.build(name), batch=1)) for name in NETWORKS}


@st.composite
def made_gpus(draw) -> Device:
    """Devices that nobody built, from 4 to 200 multiprocessors."""
    sm_count, per_sm = draw(st.integers(4, 200)), draw(st.sampled_from((64, 128)))
    clock_mhz = draw(st.floats(600, 2800))
    peak = 2e-6 * sm_count * per_sm * clock_mhz
    capability, tensor = draw(st.sampled_from((("6.1", 0.0), ("7.5", 4.0), ("8.6", 4.0), ("9.0", 8.0))))
    return Device(
        slug="made", name="made", vendor="", kind=DeviceKind.GPU, architecture="", compute_capability=capability,
        sm_count=sm_count, cores=sm_count * per_sm, clock_mhz=clock_mhz, base_clock_mhz=None, peak_fp32_tflops=peak,
        peak_fp16_tflops=None, peak_fp64_tflops=None, tensor_fp16_tflops=tensor * peak,
        bandwidth_gb_s=1e3 * peak * draw(st.floats(0.02, 0.2)), l2_mb=None, memory_gb=8.0, pcie_gb_s=16.0, year=None,
    )  # fmt: skip


DEVICES = st.one_of(st.sampled_from(GPUS), made_gpus())
CONDITIONS = st.builds(
    Conditions,
    st.sampled_from((Phase.INFERENCE, Phase.TRAINING)),
    st.sampled_from((Precision.FP32, Precision.FP16)),
    st.sampled_from((Stack.PYTORCH, Stack.CAFFE, Stack.TENSORFLOW_2)),
    st.sampled_from((Window.DEVICE, Window.PAGEABLE_COPY, Window.SESSION)),
)


def latencies(predictor, graph, devices, conditions) -> np.ndarray:
    latency_ms, _ = predictor.latencies([graph] * len(devices), [(device, conditions) for device in devices])
    assert np.isfinite(latency_ms).all() and (latency_ms > 0).all()
    return latency_ms.astype(float)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(NETWORKS),
    batch=st.sampled_from((1, 4, 32, 128)),
    device=DEVICES,
    conditions=CONDITIONS,
    steps=st.lists(st.floats(1.01, 1.5), min_size=3, max_size=3),
)
@pytest.mark.parametrize("figure", ["clock_mhz", "bandwidth_gb_s", "pcie_gb_s"])
def test_more_clock_or_bandwidth_is_never_slower(predictor, graphs, figure, name, batch, device, conditions, steps):
    factors = np.cumprod([1.0, *steps])
    better = [vary(device, {figure: getattr(device, figure) * factor}) for factor in factors]
    latency_ms = latencies(predictor, graphs[name].at_batch(batch), better, conditions)
    assert (np.diff(latency_ms) <= ROUNDING * latency_ms[:-1]).all(), latency_ms


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(NETWORKS),
    batch=st.sampled_from((1, 4, 32, 128)),
    device=DEVICES,
    conditions=CONDITIONS,
    more=st.lists(st.integers(1, 40), min_size=3, max_size=3),
)
def test_more_multiprocessors_are_not_slower_but_for_their_waves(
    predictor, graphs, name, batch, device, conditions, more
):
    counts = device.sm_count + np.cumsum([0, *more])
    better = [vary(device, {"sm_count": int(count)}) for count in counts]
    latency_ms = latencies(predictor, graphs[name].at_batch(batch), better, conditions)
    assert (np.diff(latency_ms) <= WAVES * latency_ms[:-1]).all(), latency_ms


@settings(max_examples=30, deadline=None, derandomize=True)
@given(name=st.sampled_from(NETWORKS), device=DEVICES, conditions=CONDITIONS, factor=st.floats(0.25, 8))
def test_memory_size_changes_no_latency(predictor, graphs, name, device, conditions, factor):
    size = min(max(device.memory_gb * factor, 0.1), 1e5)
    same = latencies(predictor, graphs[name], [vary(device, {"memory_gb": size}), vary(device, {})], conditions)
    assert same[0] == same[1]


def test_the_example_of_the_readme(predictor, graphs):
    """A GTX 1080 Ti with 20 % more clock, fewer cores and twice the memory."""
    from gnnperf.devices import get_device

    base = get_device("1080ti")
    clocked, fewer = vary(base, {"clock_mhz": 1.2 * base.clock_mhz}), vary(base, {"cores": 2560, "memory_gb": 22})
    both = vary(clocked, {"cores": 2560, "memory_gb": 22})
    assert both.sm_count == 20 and both.peak_fp32_tflops == pytest.approx(1.2 * base.peak_fp32_tflops * 2560 / 3584)
    graph = graphs["resnet18"].at_batch(64)
    base_ms, clocked_ms, fewer_ms, both_ms = latencies(predictor, graph, [base, clocked, fewer, both], Conditions())
    assert clocked_ms < both_ms < fewer_ms and clocked_ms < base_ms < fewer_ms
