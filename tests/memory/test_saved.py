"""What we say is kept for the backward part, beside what torch's autograd keeps of the same networks on the CPU."""

import io

import onnx
import pytest

from gnnperf.graph import read_graph
from gnnperf.memory import saved_for_backward_bytes

torch = pytest.importorskip("torch", reason="needs torch, to compare with its own accounting")
nn = torch.nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        convolutions = [nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2)]
        norms = [nn.BatchNorm2d(width) for _ in range(2)]
        self.inner = nn.Sequential(convolutions[0], norms[0], nn.ReLU(), convolutions[1], norms[1])

    def forward(self, x):
        return torch.relu(self.inner(x) + x)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.three = nn.Conv2d(3, 8, 1), nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x):
        return torch.cat([torch.relu(self.one(x)), torch.relu(self.three(x))], 1).mean((2, 3))


class SqueezeExcitation(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.gate = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 1)

    def forward(self, x):
        x = nn.functional.silu(self.stem(x))
        return (x * torch.sigmoid(self.gate(x.mean((2, 3), keepdim=True)))).mean((2, 3))


class Attention(nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.norm, self.heads = nn.LayerNorm(width), heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        batch, length, width = x.shape
        y = self.norm(x)
        q, k, v = (f(y).view(batch, length, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        scores = torch.softmax(q @ k.transpose(2, 3) / 3.0, -1)
        return x + self.out((scores @ v).transpose(1, 2).reshape(batch, length, width))


def convolutional(*layers):
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), *layers), (4, 3, 16, 16)


NETWORKS = {
    "convolutions": lambda: convolutional(nn.ReLU(), nn.Conv2d(16, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(1568, 9)),
    "residual": lambda: convolutional(nn.BatchNorm2d(16), nn.ReLU(), Residual(16), Residual(16)),
    "in place": lambda: convolutional(nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.Conv2d(16, 8, 1)),
    "pooling": lambda: convolutional(nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 8, 3), nn.AvgPool2d(2)),
    "branches": lambda: (Branches(), (2, 3, 12, 12)),
    "gates": lambda: (SqueezeExcitation(), (2, 3, 12, 12)),
    "attention": lambda: (nn.Sequential(Attention(), Attention()), (2, 24, 32)),
    "perceptron": lambda: (nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32), nn.Tanh()), (64, 32)),
    "hard swish": lambda: convolutional(nn.Hardswish(), nn.Conv2d(16, 4, 1), nn.Sigmoid()),
}


def kept_by_torch(module, shape):
    """Bytes of the storages that autograd keeps of a forward pass, without the weights."""
    weights = {tensor.untyped_storage().data_ptr() for tensor in (*module.parameters(), *module.buffers())}
    sizes = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = module.train()(torch.randn(shape))
    assert output.requires_grad
    return sum(sizes.values())


def exported(module, shape):
    file = io.BytesIO()
    module = module.eval()
    torch.onnx.export(module, (torch.randn(shape),), file, dynamo=False, opset_version=17,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)  # fmt: skip
    return read_graph(onnx.load_from_string(file.getvalue()))


@pytest.mark.parametrize("name", NETWORKS)
def test_as_much_is_kept_as_autograd_keeps(name):
    torch.manual_seed(0)
    module, shape = NETWORKS[name]()
    assert saved_for_backward_bytes(exported(module, shape)) == pytest.approx(kept_by_torch(module, shape), rel=0.02)
