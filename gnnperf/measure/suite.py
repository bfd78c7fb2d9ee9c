"""Networks and layers to measure where a predictor for a machine shall be trained on that machine's own times.

Both suites are random but seeded: the same seed gives the same cases in the same order. Each pass over the networks
adds a batch size to every one of them, so that a suite may be stopped at any time and is balanced all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from gnnperf import zoo
from gnnperf.conditions import Phase
from gnnperf.errors import ModelFileError
from gnnperf.measure.cases import Campaign, Case
from gnnperf.measure.models import Network
from gnnperf.zoo.fbnet import OPERATIONS
from gnnperf.zoo.fbnet import spec as fbnet_spec
from gnnperf.zoo.layers import ConvLayer, DenseLayer, PoolLayer, parse
from gnnperf.zoo.ofa import spec as ofa_spec

BATCHES = (1, 2, 4, 8, 16, 32)
_PHASES = (Phase.INFERENCE, Phase.TRAINING)
_MOST_GMACS = {Phase.INFERENCE: 3.0, Phase.TRAINING: 1.0}  # of a run, about 0.1 s on one core of a server
_MOST_GMACS_SHOWN = {Phase.INFERENCE: 32.0, Phase.TRAINING: 16.0}  # of the networks that everyone asks about
_SHOWN = ("lenet", "alexnet", "vgg16")
_IMAGES = (64, 96, 128, 160, 224)
_MOST_PARAMETERS = 140_000_000
_MOST_LAYER_GMACS = {Phase.INFERENCE: 1.0, Phase.TRAINING: 0.4}
_MOST_LAYER_ELEMENTS = 2**23  # of a layer's input, output or weights


def suite_networks(seed: int = 0) -> list[str]:
    """Specifications of about 400 networks of every family in the zoo, from a tenth of a megabyte to VGG19's 575."""
    generator = np.random.default_rng(seed)
    specs = [name for name in zoo.names() if zoo.default_image(name) is not None]
    networks = list(_SHOWN)
    for name in specs:
        for image in _IMAGES if zoo.default_image(name) > 100 else (zoo.default_image(name),):
            sized = f"{name}@{image}"
            if name not in _SHOWN and _is_small_enough(sized):
                networks.append(sized)
    networks += [f"nasbench201/{''.join(map(str, generator.integers(0, 5, 6)))}" for _ in range(60)]
    networks += [fbnet_spec(generator.integers(0, len(OPERATIONS), 22)) for _ in range(30)]
    networks += [
        ofa_spec(generator.choice([3, 5, 7], 20), generator.choice([3, 4, 6], 20), generator.integers(2, 5, 5),
                 int(generator.choice([96, 128, 160, 192, 224])))
        for _ in range(30)
    ]  # fmt: skip
    networks += [_transformer(generator) for _ in range(40)]
    return list(dict.fromkeys(networks))


def network_cases(campaign: Campaign, seed: int = 0) -> Iterator[Case]:
    """Every network of the suite at ever more batch sizes, in both phases; LeNet, AlexNet and VGG16 at all at once.

    A training step has at least two samples, since batch normalisation cannot take statistics of one value.

    Args:
        campaign: backend, threads, device and so on; its networks, batches and phases are not used.
        seed: of networks, order and batch sizes.
    """
    generator = np.random.default_rng(seed)
    names = suite_networks(seed)
    for name in _SHOWN:
        for phase in _PHASES:
            yield from (Case(Network(name), batch, phase, campaign) for batch in _batches(name, phase))
    names = generator.permutation([name for name in names if name not in _SHOWN]).tolist()
    plans = {
        (name, phase): generator.permutation(_batches(name, phase)).tolist() for name in names for phase in _PHASES
    }
    for turn in range(len(BATCHES)):
        for name in names:
            for phase in _PHASES:
                if turn < len(plans[name, phase]):
                    yield Case(Network(name), plans[name, phase][turn], phase, campaign)


def layer_cases(campaign: Campaign, count: int, seed: int = 0) -> Iterator[Case]:
    """Single layers at random sizes as ResPerfNet's authors drew them: half convolutions, a quarter each of the others.

    Every layer is timed in inference, every second one in training too. Sizes are drawn evenly in their logarithm and
    are smaller than those of the authors, which were meant for a GPU.

    Args:
        campaign: backend, threads, device and so on; its networks, batches and phases are not used.
        count: layers.
        seed: of the sizes.
    """
    generator = np.random.default_rng(seed)
    makers = (_conv, _dense, _conv, _pool)
    seen: set[tuple[str, int]] = set()
    number = 0
    while number < count:
        spec, batch = makers[number % len(makers)](generator), int(generator.choice(BATCHES))
        gmacs = _gmacs(spec, batch)
        if (spec, batch) in seen or gmacs > _MOST_LAYER_GMACS[Phase.INFERENCE] or not _fits(spec, batch):
            continue
        seen.add((spec, batch))
        network = Network(spec)
        yield Case(network, batch, Phase.INFERENCE, campaign)
        if number // len(makers) % 2 and gmacs <= _MOST_LAYER_GMACS[Phase.TRAINING]:
            yield Case(network, batch, Phase.TRAINING, campaign)
        number += 1


def _transformer(generator: np.random.Generator) -> str:
    kind = str(generator.choice(["bert", "gpt2", "opt"]))
    heads = int(generator.choice([2, 4, 8]))
    hidden = heads * int(generator.choice([16, 32, 64]))
    layers, tokens = int(generator.integers(1, 9)), int(generator.choice([16, 32, 64, 128]))
    return f"{kind}?layers={layers}&hidden={hidden}&heads={heads}&seq={tokens}&vocab=2000"


def _conv(generator: np.random.Generator) -> str:
    kernel = int(generator.choice([1, 3, 3, 5, 7, 11]))
    return str(
        ConvLayer(
            image=max(_log_uniform(generator, 4, 224), kernel),
            channels=_log_uniform(generator, 3, 1024),
            filters=_log_uniform(generator, 8, 1024),
            kernel=kernel,
            stride=int(generator.choice([1, 1, 2, 4])),
            padding=str(generator.choice(["same", "valid"])),
            bias=bool(generator.integers(2)),
            activation="relu" if generator.integers(2) else None,
        )
    )


def _dense(generator: np.random.Generator) -> str:
    activation = "relu" if generator.integers(2) else None
    return str(DenseLayer(_log_uniform(generator, 16, 25_088), _log_uniform(generator, 8, 4096), True, activation))


def _pool(generator: np.random.Generator) -> str:
    kernel = int(generator.choice([2, 3, 5, 7]))
    image = max(_log_uniform(generator, 4, 224), kernel)
    kind, padding = str(generator.choice(["max", "average"])), str(generator.choice(["same", "valid"]))
    stride = int(generator.choice([1, 2, 2, 4]))
    return str(PoolLayer(image, _log_uniform(generator, 3, 1024), kernel, stride, padding, kind))


def _log_uniform(generator: np.random.Generator, low: int, high: int) -> int:
    return round(float(np.exp(generator.uniform(np.log(low), np.log(high)))))


def _batches(name: str, phase: Phase) -> list[int]:
    most = (_MOST_GMACS_SHOWN if name in _SHOWN else _MOST_GMACS)[phase]
    smallest = 2 if phase == Phase.TRAINING and name not in _SHOWN else 1
    return [batch for batch in BATCHES if batch >= smallest and _gmacs(name, batch) <= most]


def _is_small_enough(name: str) -> bool:
    try:
        counts = _counts(name)
    except ModelFileError:  # too small an image for it
        return False
    return counts.parameters <= _MOST_PARAMETERS and 1e-9 * counts.macs <= _MOST_GMACS[Phase.INFERENCE]


def _gmacs(name: str, batch: int) -> float:
    return 1e-9 * batch * _counts(name).macs


def _fits(name: str, batch: int) -> bool:
    """Whether a layer's input and weights are small; outputs follow from the multiply-accumulates or are smaller."""
    layer = parse(name)
    image = 1 if isinstance(layer, DenseLayer) else layer.image**2
    inputs = batch * layer.channels * image
    return inputs <= _MOST_LAYER_ELEMENTS and _counts(name).parameters <= _MOST_LAYER_ELEMENTS


@cache
def _counts(name: str) -> zoo.Counts:
    return zoo.count(name)
