"""Real files from many exporters: all of them read, and their shapes are those that onnxruntime produces."""

import onnx
import pytest
from onnx_execution import executed_shapes

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


# Not run by onnxruntime: without its weights, and a branch that only a rate of 8 kHz takes.
NOT_RUN = ("nnlqp__resnet18-v1-7-no-weight", "silero_vad__silero_vad")
SIZES = {"silero_vad__silero_vad_16k_op15": {"sequence": 512}, "silero_vad__silero_vad_op18_ifless": {"sequence": 512}}


@pytest.mark.parametrize("batch", [None, 2])
def test_shapes_are_those_of_onnxruntime(shared, batch):
    """Every tensor of every file that runs, at the batch of the file and at one that it does not prescribe."""
    files, tensors = 0, 0
    for path in sorted((shared / "onnx").glob("*.onnx")):
        model = read_model(path)
        dims = bind_dims(model.graph, batch, SIZES.get(path.stem))
        if path.stem in NOT_RUN or (batch is not None and dims.fixed_batch is not None):
            continue
        traced = trace(model, dims)
        executed = executed_shapes(onnx.load(path), dims)
        shapes = {t.name: t.shape for operator in traced.operators for t in operator.outputs if t.name in executed}
        assert shapes == {name: executed[name] for name in shapes}, path.name
        files, tensors = files + 1, tensors + len(shapes)
    assert (files, tensors > 900) == (20 if batch is None else 11, True)
