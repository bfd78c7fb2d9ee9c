"""Predictions taken apart and put together again."""

from dataclasses import replace

import numpy as np
import pytest

from gnnperf.adaptation.components import corrected, log_scales
from gnnperf.conditions import Window
from gnnperf.devices.correction import SCALES, Correction
from gnnperf.errors import DeviceError


def scale(**factors: float) -> np.ndarray:
    return log_scales(Correction(tuple(factors.items()), 1, "0" * 16))


def test_parts_make_up_the_prediction(parts):
    whole, _ = parts._model(np.zeros(len(SCALES)))
    np.testing.assert_allclose(whole, parts.latency_ms, rtol=0.05)
    one_sided = (parts.launch_ms.sum(1) > 2 * parts.device_ms.sum(1)) | (
        parts.device_ms.sum(1) > 2 * parts.launch_ms.sum(1)
    )
    np.testing.assert_allclose(whole[one_sided], parts.latency_ms[one_sided], rtol=0.02)
    assert one_sided.sum() > len(parts) / 2


def test_the_copy_is_seen_where_the_window_includes_it(parts, cases):
    graphs, devices, _ = cases
    includes = np.array([conditions.window != Window.DEVICE for _, conditions in devices])
    assert (parts.copy_ms[~includes] < 1e-3 * parts.latency_ms[~includes]).all()
    bytes_in = np.array([graph.input_bytes for graph in graphs])[includes]
    speed = bytes_in / parts.copy_ms[includes]
    np.testing.assert_allclose(speed, speed[0], rtol=0.05)  # one speed, whatever the network


def test_no_scale_is_no_change(parts):
    same, _ = parts.scaled(np.zeros(len(SCALES)))
    np.testing.assert_array_equal(same, parts.latency_ms)


def test_derivatives_are_those_of_the_latency(parts):
    random = np.random.default_rng(0)
    at = random.normal(0, 0.3, len(SCALES))
    _, gradient = parts.scaled(at)
    for number in range(len(SCALES)):
        step = np.zeros(len(SCALES))
        step[number] = 1e-5
        up, down = parts.scaled(at + step)[0], parts.scaled(at - step)[0]
        np.testing.assert_allclose(gradient[:, number], np.log(up / down) / 2e-5, atol=1e-5)


def test_each_side_follows_its_scale(parts):
    launches = parts.launch_ms.sum(1) > 3 * parts.device_ms.sum(1)
    assert launches.any() and not launches.all()
    by_launch = parts.scaled(scale(launch=2.0))[0] / parts.latency_ms
    by_device = parts.scaled(scale(device=2.0))[0] / parts.latency_ms
    assert (by_launch[launches] > 1.7).all() and (by_device[launches] < 1.05).all()
    both = parts.scaled(scale(launch=2.0, device=2.0, constant=2.0))[0] - parts.copy_ms
    np.testing.assert_allclose(both / (parts.latency_ms - parts.copy_ms), 2.0, rtol=0.02)


def test_a_corrected_device_is_predicted_by_its_scales_and_its_operators_sum_to_it(predictor, cases, parts):
    graphs, devices, _ = cases
    correction = Correction(
        (("launch", 1.3), ("device", 0.8), ("device_convolution_3x3", 1.5)), 5, predictor.network_digest
    )
    adapted = [(replace(device, correction=correction), conditions) for device, conditions in devices]
    latency_ms, node_ms = predictor.latencies(graphs, adapted)
    np.testing.assert_allclose(latency_ms, parts.scaled(log_scales(correction))[0], rtol=1e-5)
    for graph, total, nodes, constant, copy in zip(
        graphs, latency_ms, node_ms, parts.constant_ms, parts.copy_ms, strict=True
    ):
        assert len(nodes) == graph.num_nodes and (nodes >= 0).all()
        assert nodes.sum() == pytest.approx(total - constant - copy, rel=0.06)


def test_devices_without_a_correction_stay_as_they_are_beside_those_with_one(predictor, cases):
    graphs, devices, _ = cases
    plain, plain_nodes = predictor.network_ms(graphs[:2], devices[:2])
    adapted = replace(devices[0][0], correction=Correction((("launch", 3.0),), 1, predictor.network_digest))
    latency_ms, node_ms = corrected(predictor, graphs[:2], [(adapted, devices[0][1]), devices[1]])
    assert latency_ms[1] == plain[1] and latency_ms[0] > 1.5 * plain[0]
    np.testing.assert_array_equal(node_ms[1], plain_nodes[1])


def test_a_correction_of_another_network_is_refused(predictor, cases):
    graphs, devices, _ = cases
    foreign = replace(devices[0][0], correction=Correction((), 1, "0123456789abcdef"))
    with pytest.raises(DeviceError, match="adapted to another predictor than this one"):
        predictor.latencies(graphs[:1], [(foreign, devices[0][1])])
