"""What has to hold of the network whatever its weights are."""

import numpy as np
import onnxruntime
import pytest
import torch

from gnnperf.devices import get_device
from gnnperf.devices.features import DEVICE_FIELDS, device_features
from gnnperf.graph.arrays import FIELD, NODE_FIELDS
from gnnperf.graph.opgraph import OpClass
from gnnperf.nn.kernel import smooth_max
from gnnperf.nn.network import LatencyNetwork, NetworkConfig
from gnnperf.training.export import INPUTS, example_inputs, export_network

SPREAD = 0.3


def network(**config) -> LatencyNetwork:
    """Random weights everywhere, as training could leave them."""
    torch.manual_seed(0)
    net = LatencyNetwork(NetworkConfig(campaigns=("one", "two"), devices=("1080ti",), **config)).eval()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.randn_like(parameter) * SPREAD)
    return net


def chain(length: int = 6, seed: int = 0) -> dict[str, torch.Tensor]:
    """A chain of convolutions and activations on a GTX 1080 Ti."""
    random = np.random.default_rng(seed)
    node = np.zeros((length, len(NODE_FIELDS)), np.float32)
    op_class = np.where(np.arange(length) % 2 == 0, OpClass.CONV, OpClass.ACTIVATION)
    for row in range(length):
        channels, size = int(random.choice([32, 64, 256])), int(random.choice([7, 28, 56]))
        elements = 8 * channels * size * size
        values = {
            "input_bytes": 4 * elements, "output_bytes": 4 * elements, "output_elements": elements,
            "in_channels": channels, "out_channels": channels, "output_h": size, "output_w": size,
            "repeats": 1, "element_bytes": 4, "flops": elements,
        }  # fmt: skip
        if op_class[row] == OpClass.CONV:
            macs = elements * channels * 9
            values |= {
                "macs": macs, "flops": 2 * macs, "weight_bytes": 36 * channels * channels, "gemm_m": 8 * size * size,
                "gemm_n": channels, "gemm_k": 9 * channels, "gemm_count": 1, "kernel_h": 3, "kernel_w": 3,
                "stride": 1, "dilation": 1,
            }  # fmt: skip
        for name, value in values.items():
            node[row, FIELD[name]] = value
    index = np.stack([np.arange(length - 1), np.arange(1, length)])
    return {
        "op_class": torch.from_numpy(op_class.astype(np.int64)),
        "node": torch.from_numpy(node),
        "edge_index": torch.from_numpy(index),
        "edge_bytes": torch.from_numpy(node[:-1, FIELD["output_bytes"]].copy()),
        "node_graph": torch.zeros(length, dtype=torch.int64),
        "graph": torch.tensor([[1e6, 1e4, 8.0]]),
        "device": torch.from_numpy(device_features(get_device("1080ti")).astype(np.float32))[None],
        "conditions": torch.zeros(1, 7, dtype=torch.int64),
    }


def with_conditions(inputs: dict, **values: int) -> dict:
    columns = ("phase", "precision", "stack", "window", "optimizer", "campaign", "measured")
    conditions = inputs["conditions"].clone()
    for name, value in values.items():
        conditions[:, columns.index(name)] = value
    return {**inputs, "conditions": conditions}


def with_device(inputs: dict, **factors: float) -> dict:
    device = inputs["device"].clone()
    for name, factor in factors.items():
        device[:, DEVICE_FIELDS.index(name)] *= factor
    return {**inputs, "device": device}


@pytest.mark.parametrize("readout", ["roofline", "pooled"])
@pytest.mark.parametrize("edge_features", [True, False])
@pytest.mark.parametrize("depth", [0, 2])
def test_order_of_operators_does_not_matter(readout, edge_features, depth):
    net, inputs = network(readout=readout, edge_features=edge_features, depth=depth), chain()
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    position = torch.argsort(order)
    permuted = {
        **inputs,
        "op_class": inputs["op_class"][order],
        "node": inputs["node"][order],
        "edge_index": position[inputs["edge_index"]],
    }
    a, b = net(**inputs), net(**permuted)
    torch.testing.assert_close(a.latency_ms, b.latency_ms, rtol=1e-4, atol=0)
    torch.testing.assert_close(a.node_ms[order], b.node_ms, rtol=1e-4, atol=1e-7)


def test_graphs_in_a_batch_do_not_touch_each_other():
    net, first, second = network(), chain(6, seed=1), chain(9, seed=2)
    together = {
        name: torch.cat([first[name], second[name]])
        for name in ("op_class", "node", "edge_bytes", "graph", "device", "conditions")
    }
    together["edge_index"] = torch.cat([first["edge_index"], second["edge_index"] + 6], dim=1)
    together["node_graph"] = torch.cat([first["node_graph"], second["node_graph"] + 1])
    alone = torch.cat([net(**first).latency_ms, net(**second).latency_ms])
    torch.testing.assert_close(net(**together).latency_ms, alone, rtol=1e-5, atol=0)


def test_a_training_step_is_never_below_its_forward_pass():
    net = network()
    for seed in range(10):
        inputs = chain(seed=seed)
        inference, forward, backward, training = (
            net(**with_conditions(inputs, phase=phase)).latency_ms.item() for phase in range(4)
        )
        assert inference <= forward <= training
        assert backward <= training
        updated = [
            net(**with_conditions(inputs, phase=3, optimizer=optimizer)).latency_ms.item() for optimizer in range(1, 7)
        ]
        assert min(updated) > training


def test_corrections_stay_within_their_bounds():
    net = network(local_bound=1.0, context_bound=0.4)
    with torch.no_grad():
        for part in (net.local, net.context):
            part[-1].weight.mul_(100)
    prediction = net(**chain(20))
    assert prediction.local.abs().max() <= 1.0
    assert prediction.context.abs().max() <= 0.4
    assert prediction.context.abs().max() > 0.3  # the bound is what holds them


def test_context_can_be_switched_off_by_graph():
    net, inputs = network(), chain()
    off = net(**inputs, context_on=torch.zeros(1))
    assert off.context.abs().max() == 0
    assert off.latency_ms.item() != net(**inputs).latency_ms.item()
    assert net(**inputs, context_on=torch.ones(1)).latency_ms.item() == net(**inputs).latency_ms.item()


def test_an_untrained_network_is_the_analytic_model():
    prediction = LatencyNetwork(NetworkConfig())(**chain())
    assert prediction.local.abs().max() == 0
    assert prediction.context.abs().max() == 0


def test_operators_sum_to_the_latency_without_constant_and_copy():
    net, inputs = network(), chain()
    prediction = net(**inputs)
    constant = torch.exp(net.log_constant_ms[0] + net.effects.stack[0, 4])
    torch.testing.assert_close(prediction.node_ms.sum() + constant, prediction.latency_ms[0], rtol=1e-4, atol=0)


def test_the_copy_is_counted_in_its_windows_only():
    net, inputs = network(), chain()
    device, pinned, pageable, session = (
        net(**with_conditions(inputs, window=window)).latency_ms.item() for window in range(4)
    )
    assert device < pinned
    assert device < pageable
    assert device < session
    more_input = {**inputs, "graph": inputs["graph"] * torch.tensor([10.0, 1.0, 1.0])}
    assert net(**more_input).latency_ms.item() == device
    assert net(**with_conditions(more_input, window=2)).latency_ms.item() > pageable


@pytest.mark.parametrize(("name", "effect"), [("campaign", "campaign"), ("measured", "device")])
def test_an_unknown_campaign_or_device_has_no_effect_of_its_own(name, effect):
    net, inputs = network(), chain()
    before = net(**inputs).latency_ms.item()
    with torch.no_grad():
        getattr(net.effects, effect).add_(1.0)
    assert net(**inputs).latency_ms.item() == before
    assert net(**with_conditions(inputs, **{name: 1})).latency_ms.item() > before


@pytest.mark.parametrize("part", ["bandwidth_bytes_s", "peak_flops"])
def test_analytic_model_never_slows_down_on_a_faster_device(part):
    net, inputs = LatencyNetwork(NetworkConfig()), chain()
    times = [net(**with_device(inputs, **{part: factor})).latency_ms.item() for factor in (0.5, 1.0, 2.0, 8.0)]
    assert times == sorted(times, reverse=True)
    assert times[0] > times[-1]


@pytest.mark.parametrize("balance", [(-5.0, -5.0), (0.3, 0.7), (5.0, 5.0)])
@pytest.mark.parametrize("field", ["peak_flops", "bandwidth_bytes_s"])
def test_both_rates_grow_with_peak_and_bandwidth_whatever_the_weights(field, balance):
    net = network()
    with torch.no_grad():
        net.device_balance.copy_(torch.tensor(balance))
    device = torch.from_numpy(device_features(get_device("1080ti")).astype(np.float32)).repeat(40, 1)
    # All peaks together, as a higher clock raises them; their ratios stay.
    fields = ["peak_flops", "peak_fp32_flops", "tensor_flops"] if field == "peak_flops" else [field]
    for name in fields:
        device[:, DEVICE_FIELDS.index(name)] *= torch.logspace(-2, 2, 40)
    precision = torch.zeros(40, dtype=torch.int64)
    rate, bandwidth, _ = net._hardware(
        torch.full((40,), int(OpClass.CONV)), torch.arange(40), device, net._device_input(device, precision), precision
    )
    for reached in (rate, bandwidth):
        assert (reached.log().diff() > -1e-6).all()
    assert (rate.log() + bandwidth.log()).diff().min() > 0.05


def test_smooth_max_lies_above_the_larger_and_below_its_double():
    a, b = torch.tensor([1.0, 5.0, 3.0]), torch.tensor([4.0, 0.0, 3.0])
    result = smooth_max(a, b)
    assert (result >= torch.maximum(a, b)).all()
    assert (result <= 2 ** (1 / 4) * torch.maximum(a, b) + 1e-6).all()
    assert result[1] == 5.0


@pytest.mark.parametrize("readout", ["roofline", "pooled"])
def test_exported_network_gives_the_same_numbers_at_other_sizes(tmp_path, readout):
    net = network(readout=readout)
    export_network(net, tmp_path / "network.onnx")
    session = onnxruntime.InferenceSession((tmp_path / "network.onnx").read_bytes())
    for nodes, edges, graphs in ((7, 9, 2), (300, 500, 17), (1, 1, 1), (3, 0, 1)):
        inputs = example_inputs(nodes, edges, graphs, seed=nodes)
        expected = net(*inputs)
        latency_ms, node_ms = session.run(
            ["latency_ms", "node_ms"], {name: tensor.numpy() for name, tensor in zip(INPUTS, inputs, strict=True)}
        )
        np.testing.assert_allclose(latency_ms, expected.latency_ms.detach().numpy(), rtol=2e-4)
        np.testing.assert_allclose(node_ms, expected.node_ms.detach().numpy(), rtol=2e-3, atol=1e-3 * latency_ms.max())
