import numpy as np
import pytest

from gnnperf.datasets.graph_building import build_arrays, build_many
from gnnperf.datasets.graph_store import graph_key
from gnnperf.datasets.layer_arrays import is_layer, layer_arrays
from gnnperf.errors import DataError
from gnnperf.zoo.layers import ConvLayer, DenseLayer


def random_layers(count: int) -> list[str]:
    rng = np.random.default_rng(0)
    specs = []
    for _ in range(count):
        kernel, activation = int(rng.integers(1, 8)), rng.choice([None, "relu", "tanh", "sigmoid", "relu6"])
        padding, bias = rng.choice(["same", "valid"]), bool(rng.integers(2))
        image = int(rng.integers(kernel if padding == "valid" else 1, 65))
        channels, filters = (int(number) for number in rng.integers(1, 300, 2))
        stride = int(rng.integers(1, 5))
        specs.append(str(ConvLayer(image, channels, filters, kernel, stride, str(padding), 1, bias, activation)))
        specs.append(str(DenseLayer(channels, filters, bias, activation)))
    return specs


def test_computed_graphs_equal_those_read_from_onnx():
    specs = random_layers(60)
    for spec, got in zip(specs, layer_arrays(specs), strict=True):
        want = build_arrays(spec)
        for name in ("op_class", "node", "edge_index", "edge_bytes"):
            assert np.array_equal(getattr(got, name), getattr(want, name)), (spec, name)
            assert getattr(got, name).dtype == getattr(want, name).dtype
        assert (got.input_bytes, got.output_bytes, got.batch) == (want.input_bytes, want.output_bytes, 1)
        assert graph_key(got) == graph_key(want)


def test_grouped_convolutions_and_pools_go_the_long_way():
    assert is_layer("conv/i56-c64-f128-k3-s1-same-bias-relu") and is_layer("dense/c4096-f1000")
    assert not is_layer("conv/i56-c64-f128-k3-s1-same-g2") and not is_layer("pool/i56-c64-k2-s2-valid-max")


def test_a_malformed_layer_is_told():
    with pytest.raises(DataError, match="dense/c12"):
        layer_arrays(["dense/c12"])


def test_many_graphs_on_processes_are_those_of_one():
    specs = [f"nasbench201/{number // 25}{number // 5 % 5}{number % 5}012" for number in range(125)]
    specs = specs + [spec[:-3] + "340" for spec in specs]
    done = []
    graphs = dict(build_many([*specs, "dense/c3-f4", "lenet"], done.append, processes=2))
    assert sum(done) == len(graphs) == len(specs) + 2
    for spec in (specs[0], specs[-1], "dense/c3-f4", "lenet"):
        assert graph_key(graphs[spec]) == graph_key(build_arrays(spec))


def test_a_model_the_zoo_does_not_know_is_told():
    with pytest.raises(DataError, match=r"no graph of 'abacus'.*no architecture"):
        list(build_many(["abacus"]))
