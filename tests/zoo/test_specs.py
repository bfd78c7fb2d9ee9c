"""Specs name what they build, and bad ones say how a good one looks."""

import numpy as np
import pytest

from gnnperf import zoo
from gnnperf.errors import ModelFileError
from gnnperf.zoo import fbnet, layers, nasbench201, ofa
from gnnperf.zoo.layers import ConvLayer, DenseLayer, PoolLayer


@pytest.mark.parametrize(
    ("spec", "family", "image"),
    [
        ("lenet", "lenet", 28), ("caffe_alexnet", "alexnet", 227), ("vgg16_bn", "vgg", 224),
        ("resnet50", "resnet", 224),
        ("resnext50_32x4d@160", "resnet", 160), ("wide_resnet101_2", "resnet", 224), ("densenet121", "densenet", 224),
        ("squeezenet1_1", "squeezenet", 224), ("googlenet", "inception", 224), ("inception_v3", "inception", 299),
        ("mobilenet_v3_large", "mobilenet", 224), ("mnasnet1_0", "mnasnet", 224),
        ("shufflenet_v2_x1_0", "shufflenet", 224), ("efficientnet_b4", "efficientnet", 380),
        ("nasbench201/000000", "nasbench201", 32), (fbnet.EXAMPLE, "fbnet", 32), (ofa.EXAMPLE, "ofa", 224),
        ("bert_base?seq=64", "transformer", None), ("conv/i56-c64-f128-k3-s1-same", "layer", 56),
    ],
)  # fmt: skip
def test_family_and_image(spec, family, image):
    assert zoo.family(spec) == family
    assert zoo.default_image(spec) == image
    sizes = zoo.build(spec, 3).graph.input[0].type.tensor_type.shape.dim
    assert sizes[0].dim_value == 3
    assert image is None or [d.dim_value for d in sizes[2:]] == [image, image]


def test_symbolic_batch_reaches_the_output():
    for spec in ("resnet18", "gpt2?layers=1&seq=8", "squeezenet1_1"):
        model = zoo.build(spec, "N")
        for value in (*model.graph.input, *model.graph.output):
            assert value.type.tensor_type.shape.dim[0].dim_param == "N"


def test_nasbench201_round_trip_over_the_whole_space():
    text = "|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|none~0|nor_conv_3x3~1|skip_connect~2|"
    assert zoo.from_arch_string(text) == "nasbench201/421031"
    every = {"nasbench201/" + np.base_repr(index, 5).zfill(6) for index in range(5**6)}
    assert {zoo.from_arch_string(nasbench201.to_arch_string(spec)) for spec in every} == every
    with pytest.raises(ModelFileError, match="no NAS-Bench-201 string"):
        zoo.from_arch_string("|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~0|+|none~0|none~1|none~2|")


def test_fbnet_spec():
    indices = [7, 8, 1, 8, 4, 8, 8, 8, 7, 4, 1, 4, 7, 3, 2, 7, 3, 2, 4, 2, 4, 5]
    spec = fbnet.spec(np.array(indices))
    assert spec == "fbnet/7-8-1-8-4-8-8-8-7-4-1-4-7-3-2-7-3-2-4-2-4-5"
    # Skips at the first layer of a stage keep their convolution; elsewhere they are nothing.
    all_skips = zoo.build(fbnet.spec([8] * 22))
    assert sum(node.op_type == "Conv" for node in all_skips.graph.node) == 1 + 6 + 1


def test_ofa_spec():
    arch = {"ks": [3, 5, 7, 3] * 5, "e": [3, 4, 6, 3] * 5, "d": [2, 3, 4, 2, 3], "r": np.int64(204)}
    spec = ofa.spec(arch["ks"], arch["e"], arch["d"], arch["r"])
    assert spec == "ofa/r204-d23423-k" + "3573" * 5 + "-e" + "3463" * 5
    assert zoo.default_image(spec) == 204
    # Slots beyond a stage's depth change nothing; slots within do.
    longer = ofa.spec([3, 5, 5, 3, *arch["ks"][4:]], arch["e"], arch["d"], 204)
    assert zoo.count(longer) == zoo.count(spec)
    wider = ofa.spec([5, 5, 7, 3, *arch["ks"][4:]], arch["e"], arch["d"], 204)
    assert zoo.count(wider).macs > zoo.count(spec).macs
    assert zoo.count(spec + "-w1.2").parameters > zoo.count(spec).parameters
    assert ofa.spec(arch["ks"], arch["e"], arch["d"], 204, width=1.2) == spec + "-w1.2"


@pytest.mark.parametrize(
    "layer",
    [
        ConvLayer(56, 64, 128, 3), ConvLayer(7, 8, 16, 1, 2, "valid", 4, True, "tanh"),
        ConvLayer(9, 1, 1, 9, bias=True),
        DenseLayer(4096, 1000), DenseLayer(10, 3, True, "sigmoid"), PoolLayer(56, 64, 2, 2),
        PoolLayer(13, 5, 3, 1, "same", "average"),
    ],
)  # fmt: skip
def test_layers_round_trip(layer):
    assert layers.parse(str(layer)) == layer
    assert zoo.describe(str(layer)).name == str(layer)


def test_measured_architectures_are_all_in_the_spaces(shared):
    torch = pytest.importorskip("torch")
    help_data = shared / "data" / "help"
    strings = torch.load(help_data / "nasbench201" / "str_arch2idx.pt", weights_only=True)
    assert len({zoo.from_arch_string(text) for text in strings}) == 15_625
    archs = torch.load(help_data / "fbnet" / "metainfo.pt", weights_only=True)["arch"]
    for arch in archs[::100]:
        assert [fbnet.OPERATIONS[index] for index in arch["op_idx_list"]] == arch["arch_str"]
        assert zoo.family(fbnet.spec(arch["op_idx_list"])) == "fbnet"


def test_lenet_is_the_one_that_was_timed(shared):
    import csv

    with (shared / "data" / "resperfnet" / "models_1080ti" / "lenet" / "lenet_1.csv").open() as file:
        rows = list(csv.DictReader(file))
    # Where a layer has a weight, it is [channels_out, channels_in (, kernel, kernel)].
    timed = [
        [int(float(row[key])) for key in ("channels_out", "channels_in", "kernelsize", "kernelsize") if row[key]]
        for row in rows
        if row["channels_out"]
    ]
    weights = [list(t.dims) for t in zoo.build("lenet").graph.initializer if t.name.endswith(".weight")]
    assert weights == timed


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("resnet5", "did you mean resnet50"),
        ("ResNet-50", "did you mean resnet50"),
        ("nasbench", "did you mean nasbench201/012340"),
        ("zzzz", "gnnperf zoo list"),
        ("", "gnnperf zoo list"),
        ("resnet50@", "size in pixels"),
        ("resnet50@big", "size in pixels"),
        ("nasbench201/01234", "six digits"),
        ("nasbench201/012345", "six digits"),
        ("fbnet/0-1-2", "22 indices"),
        ("ofa/r224", "expected resolution"),
        ("bert?layer=3", "keys are layers"),
        ("bert?layers=0", "positive"),
        ("bert?hidden=100&heads=3", "multiple of heads"),
        ("bert?seq=1000", "positions"),
        ("gpt2?head=pooler", "only bert"),
        ("conv/i56", "it looks like conv/i56-c64"),
        ("conv/i0-c1-f1-k1-s1-same", "positive"),
        ("conv/i8-c3-f4-k1-s1-same-g2", "multiples of the groups"),
        ("conv/i3-c1-f1-k5-s1-valid", "does not fit"),
        ("inception_v3@20", "larger image"),
    ],
)
def test_bad_specs_are_refused_in_one_sentence(spec, says):
    with pytest.raises(ModelFileError) as caught:
        zoo.build(spec)
    assert says in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"spec": "bert_base", "image": 224}, "takes no image"),
        ({"spec": "resnet50@160", "image": 224}, "give one of them"),
        ({"spec": "resnet50", "image": -3}, "positive"),
        ({"spec": "resnet50", "image": 0}, "positive"),
        ({"spec": "resnet50", "classes": 0}, "0 classes"),
        ({"spec": "bert_base", "classes": 10}, "10 classes"),
        ({"spec": "resnet50", "batch": 0}, "batch is 0"),
        ({"spec": "resnet50", "batch": ""}, "batch is ''"),
    ],
)
def test_settings_that_do_not_fit(arguments, says):
    with pytest.raises(ModelFileError, match=says):
        zoo.build(**arguments)


@pytest.mark.parametrize("image", [32, 100, 160, 224, 300, 448])
def test_fixed_heads_take_any_image(image):
    for spec in ("vgg11", "alexnet"):
        if spec == "alexnet" and image < 64:
            continue
        assert zoo.count(spec, image=image).parameters == zoo.count(spec).parameters


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("resnet18", {"batch": 10**20}),
        ("lenet5", {"image": 10**8}),
        ("lenet5", {"classes": 10**11}),
        ("vgg16@" + 5000 * "9", {}),
        ("bert?layers=1000000000", {}),
        ("bert?vocab=" + 5000 * "9", {}),
        ("conv/" + 5000 * "9", {}),
    ],
)
def test_absurd_sizes_are_refused(spec, options):
    with pytest.raises(ModelFileError):
        zoo.build(spec, **options)
