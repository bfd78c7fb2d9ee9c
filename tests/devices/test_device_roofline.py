import numpy as np
import pytest

from gnnperf.conditions import Precision
from gnnperf.devices import get_device, list_devices
from gnnperf.devices.roofline import graph_roofline_ms, memory_bytes, roofline_ms
from gnnperf.graph.arrays import to_arrays
from gnnperf.graph.opgraph import Edge, Node, OpClass, OpGraph


def graph(dtype="float32"):
    """A convolution bound by compute, an activation bound by memory, and a view."""
    conv = Node("conv", "Conv", OpClass.CONV, macs=10**10, flops=2 * 10**10, input_bytes=4 * 10**6, weight_bytes=10**6)
    relu = Node("relu", "Relu", OpClass.ACTIVATION, flops=10**6, input_bytes=4 * 10**6, output_bytes=4 * 10**6)
    view = Node("view", "Reshape", OpClass.VIEW, input_bytes=4 * 10**6, output_bytes=4 * 10**6)
    for node in (conv, relu, view):
        node.dtype = dtype
    return to_arrays(OpGraph("g", [conv, relu, view], [Edge(0, 1, 4 * 10**6, 4), Edge(1, 2, 4 * 10**6, 4)]))


def test_each_operator_is_bound_by_compute_or_memory():
    times = roofline_ms(graph(), get_device("1080ti"))
    assert times == pytest.approx([2e10 / 11.34e12 * 1e3, 8e6 / 484.4e9 * 1e3, 0])
    assert graph_roofline_ms(graph(), get_device("1080ti")) == pytest.approx(times.sum())


def test_half_precision_moves_half_the_bytes_and_uses_tensor_cores():
    times = roofline_ms(graph(), get_device("v100-sxm2"), Precision.FP16)
    assert times == pytest.approx([2e10 / 125e12 * 1e3, 4e6 / 897e9 * 1e3, 0])
    assert memory_bytes(graph("float16"), Precision.FP16)[1] == 8e6  # the file's own sizes stand


def test_double_precision_moves_twice_the_bytes():
    times = roofline_ms(graph(), get_device("v100-sxm2"), Precision.FP64)
    assert times == pytest.approx([2e10 / 7.834e12 * 1e3, 16e6 / 897e9 * 1e3, 0], rel=1e-3)


@pytest.mark.parametrize("precision", Precision)
def test_finite_on_every_device(precision):
    for device in list_devices():
        times = roofline_ms(graph(), device, precision)
        assert np.isfinite(times).all() and (times[:2] > 0).all(), device.slug


def test_an_empty_graph_takes_no_time():
    assert graph_roofline_ms(to_arrays(OpGraph("empty")), get_device("1080ti")) == 0
