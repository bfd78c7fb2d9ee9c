"""Multiply-accumulates and parameters against what others published."""

import pytest

from gnnperf import zoo

PUBLISHED = [name for name in zoo.names() if zoo.describe(name).published]


@pytest.mark.parametrize("name", PUBLISHED)
def test_counts_are_the_published_ones(name):
    counts, published = zoo.count(name), zoo.describe(name).published
    if published.parameters is not None:
        assert counts.parameters == published.parameters
    if published.gmacs is not None:
        # torchvision rounds to a million. Papers round more, and other counters include pooling or normalisation.
        tolerance = 0.0006 if "torchvision" in published.source else 0.02 * published.gmacs
        assert counts.macs / 1e9 == pytest.approx(published.gmacs, abs=tolerance)


def test_every_torchvision_name_is_there():
    expected = {
        "alexnet", "googlenet", "inception_v3", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small",
        "squeezenet1_0", "squeezenet1_1", "resnext50_32x4d", "resnext101_32x8d", "wide_resnet50_2", "wide_resnet101_2",
        *(f"resnet{depth}" for depth in (18, 34, 50, 101, 152)),
        *(f"densenet{depth}" for depth in (121, 161, 169, 201)),
        *(f"vgg{depth}{suffix}" for depth in (11, 13, 16, 19) for suffix in ("", "_bn")),
        *(f"mnasnet{width}" for width in ("0_5", "0_75", "1_0", "1_3")),
        *(f"shufflenet_v2_x{width}" for width in ("0_5", "1_0", "1_5", "2_0")),
        *(f"efficientnet_b{number}" for number in range(8)),
    }  # fmt: skip
    assert expected <= set(zoo.names())
    assert all("torchvision" in zoo.describe(name).published.source for name in expected)


def test_nasbench201_largest_network():
    # Dong and Yang 2020: 220.12 M multiply-accumulates and 1.531546 M parameters for six 3x3 convolutions.
    counts = zoo.count("nasbench201/333333")
    assert counts.parameters == 1_531_546
    assert counts.macs / 1e6 == pytest.approx(220.12, abs=0.005)


def test_nasbench201_operations_differ_by_their_convolutions_alone():
    nothing = zoo.count("nasbench201/000000")
    assert zoo.count("nasbench201/141041") == nothing
    # 1x1: channels^2 weights and two vectors of batch normalisation, in each of 15 cells.
    one = zoo.count("nasbench201/000200").parameters - nothing.parameters
    assert one == sum(5 * (c * c + 2 * c) for c in (16, 32, 64))


def test_counts_scale_with_batch_image_and_classes():
    base = zoo.count("resnet18")
    assert zoo.count("resnet18", 8).macs == 8 * base.macs
    assert zoo.count("resnet18", 8).parameters == base.parameters
    assert zoo.count("resnet18@448").macs == pytest.approx(4 * base.macs, rel=0.01)
    assert base.parameters - zoo.count("resnet18", classes=10).parameters == 990 * 513


def test_transformer_counts_by_formula():
    layers, hidden, seq, vocab = 3, 64, 32, 1000
    counts = zoo.count(f"gpt2?layers={layers}&hidden={hidden}&heads=4&seq={seq}&vocab={vocab}")
    block = 12 * hidden * hidden * seq + 2 * seq * seq * hidden
    assert counts.macs == layers * block + seq * hidden * vocab
    without_head = zoo.count(f"gpt2?layers={layers}&hidden={hidden}&heads=4&seq={seq}&vocab={vocab}&head=none")
    assert without_head.parameters == counts.parameters  # the head shares the embedding
    assert counts.macs - without_head.macs == seq * hidden * vocab
