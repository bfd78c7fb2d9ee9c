"""Modules of torch.nn, as PyTorch exports them: read without gaps, with the shapes that onnxruntime produces."""

import io

import onnx
import pytest

from gnnperf.graph import read_graph
from gnnperf.graph.dims import bind_dims
from gnnperf.graph.reader import read_model
from gnnperf.graph.trace import trace

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
from onnx_execution import executed_shapes  # noqa: E402
from torch import nn  # noqa: E402

BATCH = 3


def image(*layers):
    return nn.Sequential(*layers), (BATCH, 4, 12, 10)


def sequence(*layers):
    return nn.Sequential(*layers), (BATCH, 7, 16)


class First(nn.Module):
    """The first of several results."""

    def __init__(self, module, copies=1):
        super().__init__()
        self.module, self.copies = module, copies

    def forward(self, x):
        return self.module(*[x] * self.copies)[0]


# name -> (module, input shape), multiply-accumulates of one batch item where a formula gives them
MODULES = {
    "convolutions": (image(nn.Conv2d(4, 8, 3, padding=1, groups=4), nn.ReLU(), nn.Conv2d(8, 6, 1)), 120 * (8 * 9 + 48)),
    "transposed": (image(nn.ConvTranspose2d(4, 5, 2, stride=2)), 120 * 4 * 5 * 4),
    "normalised": (image(nn.BatchNorm2d(4), nn.SiLU(), nn.GroupNorm(2, 4), nn.Hardswish()), 0),
    "pooled": (image(nn.MaxPool2d(3, 2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 9)), 36),
    "resized": (image(nn.Upsample(scale_factor=2), nn.PixelUnshuffle(2), nn.ReflectionPad2d(1)), 0),
    "perceptron": (sequence(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 5), nn.Softmax(2)), 7 * 672),
    "attention": ((First(nn.MultiheadAttention(16, 4, batch_first=True), 3), (BATCH, 7, 16)),
                  7 * 4 * 256 + 2 * 49 * 16),
    "encoder": (sequence(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)), 7 * (4 * 256 + 1024) + 2 * 49 * 16),
    "lstm": ((First(nn.LSTM(16, 8, batch_first=True, bidirectional=True)), (BATCH, 7, 16)), 2 * 7 * 4 * 8 * 24),
    "gru": ((First(nn.GRU(16, 8, batch_first=True)), (BATCH, 7, 16)), 7 * 3 * 8 * 24),
    "one-dimensional": ((nn.Sequential(nn.Conv1d(16, 8, 3), nn.ELU(), nn.MaxPool1d(2)), (BATCH, 16, 20)), 18 * 8 * 48),
    "three-dimensional": ((nn.Sequential(nn.Conv3d(2, 3, 3), nn.PReLU()), (BATCH, 2, 5, 6, 7)), 60 * 3 * 54),
    "bilinear": ((First(nn.Bilinear(16, 16, 4), 2), (BATCH, 16)), None),
}  # fmt: skip


def exported(name: str, dynamo: bool) -> onnx.ModelProto:
    module, shape = MODULES[name][0]
    content = io.BytesIO()
    example = (torch.ones(shape),)
    if dynamo:
        program = torch.onnx.export(module.eval(), example, dynamo=True, verbose=False)
        program.save(content)
    else:
        torch.onnx.export(
            module.eval(), example, content, dynamo=False, dynamic_axes={"x": {0: "batch"}}, input_names=["x"]
        )
    return onnx.load_from_string(content.getvalue())


def check(model: onnx.ModelProto, macs: int | None):
    graph = read_graph(model, batch=BATCH)
    assert graph.batch == BATCH and not graph.unknown_operators and all(node.resolved for node in graph.nodes)
    if macs is not None:
        assert graph.macs == BATCH * macs
    read = read_model(model)
    dims = bind_dims(read.graph, BATCH)
    shapes = {t.name: t.shape for operator in trace(read, dims).operators for t in operator.outputs}
    executed = executed_shapes(model, dims)
    assert len(shapes) >= len(graph.nodes) > 0
    assert shapes == {name: executed[name] for name in shapes}


@pytest.mark.parametrize("name", [name for name in MODULES if name != "bilinear"])
def test_traced_exports(name):
    check(exported(name, dynamo=False), MODULES[name][1])


@pytest.mark.parametrize("name", ["encoder", "bilinear"])
def test_exports_of_the_new_exporter(name):
    check(exported(name, dynamo=True), MODULES[name][1])
