"""Modules of PyTorch: the same figures as from an ONNX file of the same network, and one line where it goes wrong."""

import io
import subprocess
import sys

import onnx
import pytest
from typer.testing import CliRunner

from gnnperf import Predictor, from_torch, zoo
from gnnperf.cli.main import app
from gnnperf.errors import ModelFileError
from gnnperf.from_torch import export_module, load_module, read_module
from gnnperf.graph import read_graph

torch = pytest.importorskip("torch", reason="needs torch")
nn = torch.nn
TOLERANCE = 0.02


class Basic(nn.Module):
    """He et al. 2016, the block of ResNet-18, with widths and strides as they come."""

    def __init__(self, width, out, stride):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(width, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(True))
        self.second = nn.Sequential(nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out))
        self.skip = nn.Identity()
        if stride > 1 or width != out:
            self.skip = nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return torch.relu(self.second(self.first(x)) + self.skip(x))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
        widths = ((64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2))
        self.features = nn.Sequential(*stem, *(Basic(*width) for width in (*widths, (512, 512, 1))))
        self.head = nn.Linear(512, 1000)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.words = nn.Conv2d(3, 16, 3), nn.Embedding(100, 16)

    def forward(self, image, words):
        return self.image(image).mean((2, 3)) + self.words(words).mean(1)


class Attention(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.norm, self.inner, self.outer = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        inner = self.inner(self.norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(inner[0], inner[1], inner[2])
        return x + self.outer(mixed.transpose(1, 2).reshape(batch, length, width))


class EqualWeights(nn.Module):
    """Two layers whose weights happen to have the same content are still two layers."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(64, 64), nn.Linear(64, 64)
        self.other.load_state_dict(self.one.state_dict())

    def forward(self, x):
        return self.one(x) + self.other(x)


def perceptron():
    return nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128), nn.LayerNorm(128)), torch.zeros(32, 128)


def convolutions():
    layers = [
        nn.Conv2d(3, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, groups=4),
        nn.Hardswish(),
        nn.Flatten(),
    ]
    return nn.Sequential(*layers, nn.Linear(64 * 13 * 13, 10)), torch.zeros(8, 3, 32, 32)


NETWORKS = {
    "perceptron": perceptron,
    "convolutions": convolutions,
    "residual": lambda: (
        nn.Sequential(nn.Conv2d(3, 32, 3), Basic(32, 64, 2), Basic(64, 64, 1)),
        torch.zeros(4, 3, 64, 64),
    ),
    "two inputs": lambda: (TwoInputs(), (torch.zeros(4, 3, 32, 32), torch.zeros(4, 12, dtype=torch.int64))),
    "equal weights": lambda: (EqualWeights(), torch.zeros(16, 64)),
    "recurrent": lambda: (nn.LSTM(32, 64, num_layers=2), torch.zeros(16, 4, 32)),
    "attention": lambda: (Attention(), torch.zeros(4, 32, 64)),
}


@pytest.fixture(scope="module")
def predictor():
    return Predictor.load()


def file_of(module, inputs):
    """A file as users write it, but for batch normalisation, which the exporter would fold into convolutions."""
    file = io.BytesIO()
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    for tensor in (*module.parameters(), *module.buffers()):  # or weights of equal content would become one
        if tensor.is_floating_point():
            tensor.data.normal_()
    torch.onnx.export(module.eval(), inputs, file, dynamo=False, opset_version=20,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)  # fmt: skip
    return file.getvalue()


@pytest.mark.parametrize("name", NETWORKS)
def test_a_module_and_a_file_of_it_agree(predictor, name):
    module, inputs = NETWORKS[name]()
    for phase in ("inference", "training"):
        one = predictor.predict(module, example_inputs=inputs, phase=phase)
        other = predictor.predict(file_of(module, inputs), phase=phase)
        assert one.latency_ms == pytest.approx(other.latency_ms, rel=TOLERANCE)
        assert one.macs == other.macs and one.parameters == other.parameters
        assert one.memory.peak_bytes == pytest.approx(other.memory.peak_bytes, rel=TOLERANCE)
        assert one.batch == other.batch
    assert one.parameters == sum(weight.numel() for weight in module.parameters())


@pytest.mark.parametrize("batch", [1, 16])
def test_a_resnet_agrees_with_the_zoos(predictor, batch):
    image = torch.zeros(1, 3, 224, 224)
    module = predictor.predict(ResNet18(), example_inputs=image, batch=batch)
    assert (module.model, module.batch) == ("ResNet18", batch)
    ours = predictor.predict(zoo.build("resnet18", batch=batch))
    assert module.latency_ms == pytest.approx(ours.latency_ms, rel=TOLERANCE)
    assert (module.macs, module.parameters) == (ours.macs, ours.parameters)


def test_what_cannot_be_traced_is_captured_to_the_same(predictor, monkeypatch):
    module, inputs = nn.Sequential(nn.Conv2d(3, 32, 3, bias=False), nn.BatchNorm2d(32)), torch.zeros(4, 3, 64, 64)
    traced = predictor.predict(module, example_inputs=inputs)

    def refuse(*_):
        raise TypeError("cannot be traced")

    monkeypatch.setattr(from_torch, "_by_tracing", refuse)
    captured = predictor.predict(module, example_inputs=inputs)
    assert captured.latency_ms == pytest.approx(traced.latency_ms, rel=TOLERANCE)
    assert captured.macs == traced.macs
    assert captured.parameters == traced.parameters + 32  # the bias that is left out is spelled out as zeros


def test_a_module_is_left_as_it_is():
    module, inputs = convolutions()
    module.train()
    module[1].eval()
    weights = {name: value.clone() for name, value in module.state_dict().items()}
    modes = [part.training for part in module.modules()]
    read_module(module, inputs)
    assert [part.training for part in module.modules()] == modes and True in modes and False in modes
    assert all(torch.equal(value, weights[name]) for name, value in module.state_dict().items())
    assert all(weight.requires_grad for weight in module.parameters())


def test_no_weights_are_exported():
    model = export_module(*convolutions())
    assert len(model.SerializeToString()) < 10_000 < sum(w.numel() for w in convolutions()[0].parameters())
    assert len(model.graph.input) == 1


def test_what_is_not_a_module_takes_no_example_inputs(predictor):
    with pytest.raises(ModelFileError, match="belong to a torch"):
        predictor.predict(zoo.build("lenet5"), example_inputs=1)
    with pytest.raises(ModelFileError, match=r"ResNet18 is a torch\.nn\.Module: give example_inputs"):
        predictor.predict(ResNet18())


class Refuses(nn.Module):
    def forward(self, x):
        raise ValueError("not today\nnor tomorrow")


def test_a_module_that_cannot_be_exported_is_one_line(capfd, monkeypatch):
    def fail(module, arguments):
        raise RuntimeError("\x1b[96mThis is step 1/3\x1b[0m\nNext steps:") from ValueError("no such operator\nat all")

    monkeypatch.setattr(from_torch, "_by_tracing", fail)
    monkeypatch.setattr(from_torch, "_by_capture", fail)
    with pytest.raises(ModelFileError) as error:
        export_module(nn.Linear(1, 1), torch.zeros(1))
    assert str(error.value) == "Linear cannot be exported by torch.onnx.export (no such operator)"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("module", "inputs", "message"),
    [
        (Refuses(), torch.zeros(1), "Refuses does not run on its example inputs: ValueError: not today"),
        (nn.Linear(4, 4), torch.zeros(1, 5), "Linear does not run on its example inputs: RuntimeError: mat1 and mat2"),
        (nn.Linear(4, 4), {"inputs": torch.zeros(1, 4)}, "unexpected keyword argument 'inputs'"),
    ],
)
def test_a_module_that_does_not_run_says_why_in_one_line(module, inputs, message, capfd, monkeypatch):
    monkeypatch.setattr(from_torch, "_by_capture", lambda module, arguments: module(*arguments))  # which takes seconds
    with pytest.raises(ModelFileError) as error:
        export_module(module, inputs)
    assert message in str(error.value) and "\n" not in str(error.value)
    assert capfd.readouterr() == ("", "")  # nor does the exporter say anything


@pytest.fixture
def script(tmp_path, monkeypatch):
    (tmp_path / "user_nets.py").write_text(
        "import torch\n"
        "def small():\n    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3)), torch.zeros(2, 3, 9, 9)\n"
        "def broken():\n    raise RuntimeError('no\\nluck')\n"
        "def number():\n    return 7\n"
        "def quits():\n    import sys; sys.exit(3)\n"
    )
    (tmp_path / "user_needs.py").write_text("import a_module_that_is_nowhere\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("user_nets", "user_needs"):
        sys.modules.pop(name, None)


def test_a_function_on_the_command_line(script):
    result = CliRunner().invoke(app, ["predict", "user_nets:small", "--top", "1"])
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("small on 1080ti, batch 2, inference")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("user_nets:missing", "'user_nets:missing': module 'user_nets' has no attribute 'missing'"),
        ("user_nets:broken", "'user_nets:broken' failed: RuntimeError: no"),
        ("user_nets:number", "has to return a torch.nn.Module and its example inputs, not int"),
        ("user_nets:quits", "'user_nets:quits' failed: SystemExit: 3"),
        ("user_nowhere:f", "there is no Python module 'user_nowhere'"),
        ("user_needs:f", "there is no Python module 'a_module_that_is_nowhere'"),
    ],
)
def test_a_function_that_cannot_be_used_is_one_line(script, spec, message):
    result = CliRunner().invoke(app, ["predict", spec])
    assert result.exit_code == 1 and message in result.stderr
    assert len(result.stderr.splitlines()) == 1 and "Traceback" not in result.output


def test_without_torch_it_is_one_line_and_the_users_code_does_not_run(script, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    result = CliRunner().invoke(app, ["predict", "user_nets:small"])
    assert result.exit_code == 1 and "'user_nets:small' needs torch" in result.stderr
    assert "user_nets" not in sys.modules


def test_a_file_of_such_a_name_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(zoo.build("lenet5"), "a:b")
    assert CliRunner().invoke(app, ["predict", "a:b"]).exit_code == 0


def test_load_module_returns_what_the_function_does(script):
    module, inputs = load_module("user_nets:small")
    assert inputs.shape == (2, 3, 9, 9) and read_graph(export_module(module, inputs)).nodes[0].op_type == "Conv"


def test_predicting_a_file_never_asks_for_torch(tmp_path):
    onnx.save(zoo.build("lenet5"), tmp_path / "net.onnx")
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from gnnperf import Predictor\n"
        f"predictor = Predictor.load(); path = {str(tmp_path / 'net.onnx')!r}\n"
        "print(predictor.predict(path).batch, len(list(predictor.predict_many([path]))))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert result.stdout == "1 1\n", result.stderr
