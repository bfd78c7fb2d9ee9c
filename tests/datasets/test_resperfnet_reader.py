"""ResPerfNet's layers: on a small folder in their format, and on the real one where it is at hand."""

import pytest

from gnnperf.datasets.readers import READERS, resperfnet
from gnnperf.datasets.readers.resperfnet import is_test_layer, read_layers, read_model_layers, read_model_sums
from gnnperf.errors import DataError

CONV = "batchsize,matsize,kernelsize,channels_in,channels_out,strides,padding,activation_fct,use_bias,time_median\n"
DENSE = "batchsize,dim_input,dim_output,activation_fct,time_median\n"
POOL = "batchsize,matsize,channels_in,poolsize,padding,strides,time_median\n"
MODEL = (
    "layer,name,operation,batchsize,matsize,kernelsize,channels_in,channels_out,strides,padding,activation_fct,"
    "use_bias,poolsize,time_median\n"
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "layers_1080ti").mkdir()
    for name, head, row in (
        ("conv", CONV, "33,116,7,71,47,2,1,0,1,{}\n"),
        ("fc", DENSE, "35,1420,2379,1,{}\n"),
        ("pool", POOL, "15,98,57,5,0,3,{}\n"),
    ):
        (tmp_path / f"layers_1080ti/{name}_train.csv").write_text(head + row.format(1.5) + row.format(1.25))
        (tmp_path / f"layers_1080ti/{name}_test.csv").write_text(head + row.format(2.5))
    for network in resperfnet.NETWORKS:
        (tmp_path / "models_1080ti" / network).mkdir(parents=True)
        for batch in resperfnet.BATCHES:
            (tmp_path / f"models_1080ti/{network}/{network}_{batch}.csv").write_text(
                MODEL + f"1,c1,Conv2D,{batch},28,5.0,1,32.0,1.0,0.0,0.0,1.0,,0.5\n"
                f"2,p1,MaxPooling2D,{batch},24,,32,,2.0,0.0,,,2.0,0.25\n"
                f"3,g1,GlobalAveragePooling2D,{batch},8,,32,,1.0,0.0,,,8.0,0.125\n"
                f"4,d1,Dense,{batch},1,,1024,100.0,,,1.0,,,{batch}.0\n"
            )
    return tmp_path


def test_layers_are_described_completely_and_split_as_the_authors_did(folder):
    layers = read_layers(folder)
    assert layers["model"].tolist() == (
        ["conv/i116-c71-f47-k7-s2-same-bias"] * 3
        + ["dense/c1420-f2379-relu"] * 3
        + ["pool/i98-c57-k5-s3-valid-max"] * 3
    )
    assert layers["batch"].tolist() == [33] * 3 + [35] * 3 + [15] * 3
    assert layers["latency_ms"].tolist() == [1.5, 1.25, 2.5] * 3
    assert is_test_layer(layers).tolist() == [False, False, True] * 3
    assert set(layers["use"]) == {"evaluate"} and set(layers["kind"]) == {"layer"}


def test_sums_are_over_the_layers_of_a_network_at_a_batch(folder):
    layers = read_model_layers(folder)
    assert layers["model"].tolist()[:4] == [
        "conv/i28-c1-f32-k5-s1-valid-bias",
        "pool/i24-c32-k2-s2-valid-max",
        "pool/i8-c32-k8-s1-valid-average",
        "dense/c1024-f100-relu",
    ]
    sums = read_model_sums(folder)
    assert len(sums) == 6 * 8 and set(sums["use"]) == {"evaluate"} and set(sums["window"]) == {"session"}
    vgg = sums[sums["model"] == "vgg16"]
    assert vgg["batch"].tolist() == list(resperfnet.BATCHES)
    assert vgg["latency_ms"].tolist() == [0.875 + batch for batch in resperfnet.BATCHES]


def test_what_cannot_be_read_is_named(folder):
    with pytest.raises(DataError, match="not timed on v100"):
        read_layers(folder, ["v100"])
    with pytest.raises(DataError, match=r"p4000_convolution\.csv\.gz is missing"):
        read_layers(folder, ["p4000"])
    path = folder / "layers_1080ti/fc_test.csv"
    path.write_text(DENSE + "35,1420,2379,1,-2\n")
    with pytest.raises(DataError, match="latency_ms has to be a positive number"):
        read_layers(folder)
    path.write_text("batchsize,dim_input\n1,2\n")
    with pytest.raises(DataError, match=r"fc_test\.csv: column .* is missing"):
        read_layers(folder)
    (folder / "models_1080ti/lenet/lenet_8.csv").write_text(MODEL + "1,d,Dense,4,1,,10,10.0,,,1.0,,,0.1\n")
    with pytest.raises(DataError, match=r"lenet_8\.csv holds other batch sizes than 8"):
        read_model_sums(folder)


def test_no_import_takes_them():
    assert resperfnet.NAME not in READERS


def test_the_real_sums_are_those_of_the_source(shared):
    sums = read_model_sums(shared / "data/resperfnet").set_index(["model", "batch"])["latency_ms"]
    assert len(sums) == 48
    assert sums["lenet", 1] == pytest.approx(1.79, abs=0.01)
    assert sums["vgg16", 16] == pytest.approx(123, abs=0.5)
    assert sums["vgg16", 128] == pytest.approx(930, abs=1)
