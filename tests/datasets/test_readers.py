"""Each reader on a small folder in its source's format, and on the real one where it is at hand."""

import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest

from gnnperf import zoo
from gnnperf.datasets.checksums import source_files, verify_files
from gnnperf.datasets.importing import read_source
from gnnperf.datasets.readers import (
    READERS,
    cnn_benchmarks,
    dlinfbench,
    help,
    justus2018,
    lambda_tensorflow,
    neusight,
    published,
    pytorch_gpu_benchmark,
    timm,
    whole_models,
)
from gnnperf.datasets.schema import validate
from gnnperf.datasets.splits import HEADLINE_FAMILIES
from gnnperf.devices.registry import get_device
from gnnperf.errors import DataError


def write_archive(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(content, protocol=2))


@pytest.fixture
def help_folder(tmp_path):
    architectures = {
        "nasbench201": {
            "|none~0|+|nor_conv_3x3~0|none~1|+|none~0|none~1|skip_connect~2|": 1,
            "|skip_connect~0|+|none~0|none~1|+|none~0|none~1|avg_pool_3x3~2|": 0,
        },
        "fbnet": {"arch": [{"op_idx_list": [8] * 22}, {"op_idx_list": list(range(9)) + [1] * 13}]},
        "ofa": {"arch": [{"ks": [3] * 20, "e": [4] * 20, "d": [2] * 5, "r": np.int64(r)} for r in (128, 224)]},
    }
    for name in help.FILES:
        space = name.split("/")[0]
        write_archive(tmp_path / name, [1.5, 2.5] if "/latency/" in name else architectures[space])
    return tmp_path


def test_help_pairs_latencies_with_architectures(help_folder):
    frame = validate(help.read(help_folder), "help")
    assert len(frame) == 2 * (2 * 19 + 12)
    row = frame[frame["citation"] == "nasbench201/latency/1080ti_256.pt"]
    assert row["model"].tolist() == ["nasbench201/100004", "nasbench201/030001"]
    assert row["latency_ms"].tolist() == [1.5, 2.5]
    assert set(row["batch"]) == {256} and set(row["device"]) == {"1080ti"}
    assert set(frame["family"]) == {"nasbench201", "fbnet", "ofa"}
    assert set(frame[frame["device"].str.startswith("xeon")]["batch"]) == {1}


def test_help_refuses_a_file_of_another_length(help_folder):
    write_archive(help_folder / "fbnet/latency/2080ti_1.pt", [1.0, 2.0, 3.0])
    with pytest.raises(DataError, match=r"2080ti_1\.pt: 2 latencies expected"):
        help.read(help_folder)


def test_help_refuses_an_unknown_architecture(help_folder):
    write_archive(help_folder / "nasbench201/str_arch2idx.pt", {"|dil_conv~0|+|none~0|none~1|": 0, "x": 1})
    with pytest.raises(DataError, match=r"str_arch2idx\.pt holds no list of nasbench201"):
        help.read(help_folder)


def old_pickle(table: pd.DataFrame) -> bytes:
    """A DataFrame as pandas 0.23 pickled it: opcodes around the parts that today's pickle can write."""

    def part(content):
        return pickle.dumps(content, protocol=2)[2:-1]

    new = b")\x81"  # of the class just named, without arguments
    blocks = [
        {"mgr_locs": slice(at, at + 1), "values": table[[name]].to_numpy().T} for at, name in enumerate(table.columns)
    ]
    names = part({"data": np.array(list(table.columns), object), "name": None})
    index = b"cpandas.core.indexes.base\n_new_Index\ncpandas.core.indexes.base\nIndex\n" + names + b"\x86R"
    state = b"(]" + index + b"a]]" + part({"0.14.1": {"blocks": blocks}}) + b"t"
    manager = b"cpandas.core.internals\nBlockManager\n" + new + state + b"b"
    return b"\x80\x02cpandas.core.frame\nDataFrame\n" + new + b"}" + part("_data") + manager + b"sb."


@pytest.fixture
def justus_folder(tmp_path):
    times = {"timeUsed_median": [1.5, 4.5], "timeUsed_std": [0.1, 0.2]}
    convolutions = {
        "matsize": [32, 7], "channels_in": [3, 8], "channels_out": [16, 4], "kernelsize": [3, 1], "strides": [1, 2],
        "padding": [1, 0], "use_bias": [True, False], "activation_fct": [1, 0], "batchsize": [4, 9],
        "optimizer": [0, 5], **times,
    }  # fmt: skip
    dense = {"dim_input": [64, 9], "dim_output": [10, 20], "activation_fct": [2, 3], "batchsize": [1, 2],
             "optimizer": [4, 6], **times}  # fmt: skip
    for name, table in (("1080ti/0/benchmark_convolution_", convolutions), ("k80/1/benchmark_dense_", dense)):
        path = tmp_path / "raw_data" / f"{name}_20180924.pkl"
        path.parent.mkdir(parents=True)
        path.write_bytes(old_pickle(pd.DataFrame(table)))
    vgg = tmp_path / "vgg16_v100" / "benchmark_VGG16_V100_adam_20181022.csv"
    vgg.parent.mkdir()
    vgg.write_text("operation, imsize, batchsize,time per batch (ms), comment\nVGG-16, 224, 2, 77.350, \n")
    return tmp_path


def test_justus_layers_become_specs_with_phase_and_optimizer(justus_folder):
    frame = validate(justus2018.read(justus_folder), "justus2018")
    assert frame["model"].tolist() == [
        "conv/i32-c3-f16-k3-s1-same-bias-relu",
        "conv/i7-c8-f4-k1-s2-valid",
        *(frame["model"].tolist()[2:4]),
        "vgg16",
    ]
    assert frame["model"].tolist()[2].startswith("dense/c64-f10")
    assert frame["kind"].tolist() == ["layer"] * 4 + ["model"]
    assert frame["phase"].tolist() == ["inference", "training", "training", "training", "training"]
    assert frame["optimizer"].tolist() == ["none", "adam", "momentum", "rmsprop", "adam"]
    assert frame["device"].tolist() == ["1080ti", "1080ti", "k80", "k80", "v100-pcie"]
    assert frame["latency_ms"].tolist() == [1.5, 4.5, 1.5, 4.5, 77.35]
    assert frame["batch"].tolist() == [4, 9, 1, 2, 2]


def test_justus_refuses_an_unknown_optimizer(justus_folder):
    path = next(justus_folder.glob("raw_data/1080ti/*/*.pkl"))
    path.write_bytes(old_pickle(justus2018.load_frame_columns(path).assign(optimizer=[0, 7])))
    with pytest.raises(DataError, match="optimizer holds values outside 0"):
        justus2018.read(justus_folder)


def test_pytorch_gpu_benchmark_takes_medians_of_single_gpu_files(tmp_path):
    for folder, name in (
        ("results/1080TI", "GeForce GTX 1080 Ti_half_model_training_benchmark.csv"),
        ("results/2080TI", "GeForce RTX 2080 Ti_double_model_inference_benchmark(1).csv"),
        ("new_results", "GeForce RTX 2080 Ti_1_gpus__float_model_train_benchmark.csv"),
        ("new_results", "GeForce RTX 2080 Ti_4_gpus__float_model_train_benchmark.csv"),
    ):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / name).write_text("resnet18,vgg16\n1,10\n2,30\n9,20\n")
    frame = validate(pytorch_gpu_benchmark.read(tmp_path), "p")
    assert len(frame) == 6 and set(frame["batch"]) == {12} and set(frame["repeats"]) == {3}
    row = frame[frame["device"] == "1080ti"].set_index("model")
    assert row["latency_ms"].to_dict() == {"resnet18": 2.0, "vgg16": 20.0}
    assert set(row["precision"]) == {"fp16"} and set(row["phase"]) == {"training"}
    assert set(row["optimizer"]) == {"none"} and set(row["window"]) == {"pageable-copy"}


def test_pytorch_gpu_benchmark_refuses_an_unknown_device(tmp_path):
    (tmp_path / "new_results").mkdir()
    (tmp_path / "new_results" / "Abacus_1_gpus__float_model_train_benchmark.csv").write_text("vgg16\n1\n")
    with pytest.raises(DataError, match="Abacus"):
        pytorch_gpu_benchmark.read(tmp_path)


def cnn_run(**changes) -> str:
    options = {"model_t7": "models/alexnet/alexnet.t7", "batch_size": 16, "image_height": 224, "image_width": 224,
               "use_cudnn": 1, **changes}  # fmt: skip
    return json.dumps(
        {
            "forward_times": [0.004, 0.005, 0.009],
            "backward_times": [0.01, 0.01, 0.01],
            "total_times": [0.014, 0.015, 0.019],
            "gpu_name": "GeForce GTX 1080 Ti",
            "cudnn_version": 5110,
            "opt": options,
        }
    )


def test_cnn_benchmarks_gives_three_phases_of_runs_with_cudnn(tmp_path):
    folder = tmp_path / "outputs" / "x"
    folder.mkdir(parents=True)
    (folder / "1.json").write_text(cnn_run())
    (folder / "2.json").write_text(cnn_run(use_cudnn=0))
    frame = validate(cnn_benchmarks.read(tmp_path), "c")
    assert frame["phase"].tolist() == ["forward", "backward", "training"]
    assert frame["latency_ms"].tolist() == pytest.approx([5, 10, 15])
    assert set(frame["model"]) == {"caffe_alexnet@224"}
    (folder / "3.json").write_text(cnn_run(image_height=256))
    with pytest.raises(DataError, match=r"3\.json"):
        cnn_benchmarks.read(tmp_path)
    (folder / "3.json").write_text(cnn_run()[:50])
    with pytest.raises(DataError, match=r"3\.json is damaged"):
        cnn_benchmarks.read(tmp_path)


def test_dlinfbench_turns_images_a_second_into_milliseconds(tmp_path):
    folder = tmp_path / "results" / "gtx_1080_ti"
    folder.mkdir(parents=True)
    (folder / "pytorch_alexnet_4.txt").write_text("pytorch alexnet 4 2000.0 697")
    (folder / "mxnet_resnet50_float16_8.txt").write_text("mxnet resnet50 float16 8 1000.0 697")
    (folder / "caffe2_alexnet_1.txt").write_text("caffe2 alexnet 1 100.0 697")
    frame = validate(dlinfbench.read(tmp_path), "d").set_index("stack")
    assert frame.loc["pytorch-0.1", ["model", "batch", "latency_ms"]].tolist() == ["alexnet@227", 4, 2.0]
    assert frame.loc["mxnet", ["model", "precision", "latency_ms"]].tolist() == ["preact_resnet50", "fp16", 8.0]
    assert len(frame) == 2
    (folder / "pytorch_vgg16_4.txt").write_text("pytorch vgg16 4")
    with pytest.raises(DataError, match=r"pytorch_vgg16_4\.txt is no result"):
        dlinfbench.read(tmp_path)


def test_lambda_drops_what_cannot_be_compared(tmp_path):
    names = "name_gpu,num_gpu,alexnet,inception3,inception4,resnet152,resnet50,vgg16\n"
    for precision in ("fp32", "fp16"):
        for kind, rows in (
            ("throughput", "RTX 2080Ti,1,500,1,1,1,0,1\n2x RTX 2080Ti,2,9,9,9,9,9,9\nRTX 3090,1,1,1,1,1,1,1\n"
             "GTX 1080Ti,1,1,1,1,1,1,1\n"),
            ("bs", "RTX 2080Ti,1,512,8,8,8,8,8\n2x RTX 2080Ti,2,9,9,9,9,9,9\nRTX 3090,1,8,8,8,8,8,8\n"
             "GTX 1080Ti,1,8,8,8,8,8,8\n"),
        ):  # fmt: skip
            (tmp_path / f"tf-train-{kind}-{precision}.csv").write_text(names + rows)
    frame = validate(lambda_tensorflow.read(tmp_path), "l")
    assert frame.groupby(["device", "precision"], observed=True).size().to_dict() == {
        ("2080ti", "fp32"): 5,
        ("2080ti", "fp16"): 5,
        ("3090", "fp16"): 6,
    }
    alexnet = frame[(frame["model"] == "tf_alexnet") & (frame["device"] == "2080ti")]
    assert alexnet["latency_ms"].tolist() == [1024.0, 1024.0]
    (tmp_path / "tf-train-bs-fp16.csv").unlink()
    with pytest.raises(DataError, match="cannot read"):
        lambda_tensorflow.read(tmp_path)


NEUSIGHT = """device,model,phase,seqlen,batch,option,num_layer,e2e_ms,fw_ms,bwall_ms,file
Tesla_T4,bert_large,inf,512,8,,24,694.5,694.5,0,a.json
Tesla_T4,bert_large,inf,512,8,fusion,24,500.0,500.0,0,b.json
Tesla_T4,switchxl4,inf,512,1,,0,323.1,323.1,0,c.json
AMD_Instinct_MI100,gpt3_27,train,2048,2,,32,135.0,47.0,88.0,d.json
AMD_Instinct_MI210,gpt2_large,train,1024,4,,36,1843.0,1115.0,728.0,e.json
"""


def test_neusight_splits_training_steps(tmp_path):
    path = tmp_path / "e2e_latency_ms.csv"
    path.write_text(NEUSIGHT)
    frame = validate(neusight.read(tmp_path), "n").set_index("phase")
    assert len(frame) == 4
    assert frame.loc["inference", ["model", "device", "batch", "latency_ms"]].tolist() == [
        "bert_large?head=lm&seq=512", "t4", 8, 694.5,
    ]  # fmt: skip
    assert frame["latency_ms"].to_dict() == {"inference": 694.5, "training": 135.0, "forward": 47.0, "backward": 88.0}
    assert frame.loc["training", "model"] == "gpt3_2_7b?head=lm&seq=2048"
    assert set(frame["optimizer"]) == {"none"} and set(frame["family"]) == {"transformer"}
    path.write_text("\n".join(NEUSIGHT.splitlines()[:2]))
    assert len(neusight.read(tmp_path)) == 1
    for wrong in ("Abacus,bert_large,inf", "Tesla_T4,abacus,inf", "Tesla_T4,bert_large,dream"):
        path.write_text(NEUSIGHT + f"{wrong},512,8,,24,1,1,0,f.json\n")
        with pytest.raises(DataError, match="is no table of NeuSight's labels"):
            neusight.read(tmp_path)


def write_timm(folder):
    """An inference and a training run, and three that are not read.

    One network ran out of memory, another had fewer parameters in one of the runs.
    """
    (folder / "results").mkdir(parents=True)
    (folder / "results-history").mkdir()
    inference = (
        "model,infer_img_size,infer_samples_per_sec,infer_step_time,infer_batch_size,param_count,infer_gmacs,infer_macts\n"
        "resnet18,160,2000.0,128.0,256,11.69,0.93,1.27\nresnet18,224,1000.0,256.0,256.0,11.69,1.82,2.48\n"
        "repvgg_a0,224,500.0,512.0,256,9.11,1.52,3.59\nmobileone_s0,224,500.0,512.0,256,2.08,0.28,3.79\n"
        "vit_7b_patch16_dinov3,256,,,,6716,1775,515\n"
    )
    training = (
        "model,train_samples_per_sec,train_step_time,train_batch_size,train_img_size,param_count\n"
        "resnet18,500.0,512.5,256,224,11.69\nmobileone_s0,50.0,5125.0,256,224,5.29\n"
    )
    for name, content in (
        ("results/benchmark-infer-amp-nchw-pt291-cu128-4090.csv", inference),
        ("results/benchmark-infer-amp-nchw-pt291-cu128-4090-dynamo.csv", inference),
        ("results/benchmark-infer-amp-nhwc-pt240-cu124-rtx4090.csv", inference),
        ("results/benchmark-infer-bf16-nchw-pt291-cu130-pro6000maxq-dynamo.csv", inference),
        ("results-history/benchmark-train-amp-nchw-pt112-cu113-rtx3090.csv", training),
    ):
        (folder / name).write_text(content)
    return folder


def test_timm_reads_eager_mixed_precision_runs_of_networks_that_stayed_the_same(tmp_path):
    frame = validate(timm.read(write_timm(tmp_path)), "timm")
    assert frame["model"].tolist() == [
        "timm/resnet18@160",
        "timm/resnet18@224",
        "timm/repvgg_a0@224",
        "timm/resnet18@224",  # of the history
    ]
    assert frame["family"].tolist() == ["resnet", "resnet", "vgg", "resnet"]
    assert frame["latency_ms"].tolist() == [128.0, 256.0, 512.0, 512.5] and set(frame["batch"]) == {256}
    assert frame["phase"].tolist() == ["inference"] * 3 + ["training"]
    assert frame["optimizer"].tolist() == ["none"] * 3 + ["momentum"]
    assert frame["device"].tolist() == ["4090"] * 3 + ["3090"]
    assert frame["framework_version"].tolist() == ["2.9.1"] * 3 + ["1.12"]
    assert set(frame["precision"]) == {"fp16"} and set(frame["stack"]) == {"pytorch"}
    counts = timm.published_counts(tmp_path)
    assert counts.loc["timm/resnet18@224"].tolist() == [1.82, 11.69] and len(counts) == 3


def test_timm_refuses_an_unknown_device_and_other_columns(tmp_path):
    path = write_timm(tmp_path) / "results/benchmark-infer-amp-nchw-pt291-cu130-abacus.csv"
    path.write_text("model\n")
    with pytest.raises(DataError, match="abacus"):
        timm.read(tmp_path)
    path.unlink()
    path.with_name("benchmark-infer-amp-nchw-pt291-cu130-5090.csv").write_text("model,step\nresnet18,3\n")
    with pytest.raises(DataError, match=r"5090\.csv is no result of timm's benchmark\.py"):
        timm.read(tmp_path)


def test_whole_models_takes_only_what_no_other_reader_has(tmp_path):
    row = {
        "source_repo": "lambdal/lambda-tensorflow-benchmark", "source_path": "log", "device": "GeForce GTX 1080 Ti",
        "framework": "tensorflow", "framework_version": "2.2.0", "precision": "fp32", "model": "alexnet", "batch": 512,
        "phase": "train_step", "value": 194.2, "unit": "ms/batch", "how_measured": "synthetic (on GPU) data",
    }  # fmt: skip
    rows = [
        row,
        {**row, "how_measured": "real ImageNet data"},
        {**row, "source_repo": "nicklhy/DLInfBench"},
        {**row, "source_repo": "PaddlePaddle/Paddle", "framework": "tensorrt", "phase": "inference", "batch": 8},
    ]
    path = tmp_path / "whole_models.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    frame = validate(whole_models.read(tmp_path), "w")
    assert frame["model"].tolist() == ["tf_alexnet", "lenet_paddle"]
    assert frame["phase"].tolist() == ["training", "inference"]
    assert frame["use"].tolist() == ["train", "evaluate"]
    pd.DataFrame([{**row, "device": "Abacus"}]).to_csv(path, index=False)
    with pytest.raises(DataError, match="Abacus"):
        whole_models.read(tmp_path)


def test_checksums_name_the_file_that_differs(tmp_path, monkeypatch):
    folder = tmp_path / "source" / "results" / "gtx_1080_ti"
    folder.mkdir(parents=True)
    file = folder / "caffe_vgg16_1.txt"
    file.write_text("caffe vgg16 1 150.0 1000")
    source, root = READERS["dlinfbench"], tmp_path / "source"
    manifest = tmp_path / "sources.json"
    manifest.write_text(json.dumps({"dlinfbench": source_files(source, root)}))
    monkeypatch.setattr("gnnperf.datasets.checksums.resource", lambda name: manifest)
    verify_files(source, root)
    file.write_text("caffe vgg16 1 151.0 1000")
    with pytest.raises(DataError, match=r"caffe_vgg16_1\.txt differs.*--no-verify"):
        verify_files(source, root)
    assert len(read_source(source, root, verify=False)) == 1
    file.rename(folder / "caffe_vgg16_2.txt")
    with pytest.raises(DataError, match=r"caffe_vgg16_1\.txt is missing \(and 1 more\)"):
        verify_files(source, root)


def test_missing_and_empty_folders_are_told(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_source(READERS["help"], tmp_path / "absent")
    with pytest.raises(DataError, match="no measurements"):
        read_source(READERS["dlinfbench"], tmp_path, verify=False)


def test_published_rows_hold_every_headline_truth():
    frame = validate(published.load_published(), "published")
    assert len(frame) == READERS["published"].rows
    assert set(frame["device"]) == {"1080ti"} and set(frame["precision"]) == {"fp32"}
    headline = frame[frame["family"].isin(HEADLINE_FAMILIES)]
    assert set(headline["family"]) == set(HEADLINE_FAMILIES)
    assert headline.groupby(["family", "phase"], observed=True).size()["vgg", "inference"] >= 64
    others = frame[~frame["family"].isin(HEADLINE_FAMILIES)]
    assert len(others) >= 60 and {"inference", "training"} <= set(others["phase"])


@pytest.mark.parametrize("name", READERS)
def test_public_sources_give_their_known_rows(name, shared):
    from gnnperf.resources import resource

    folder = {"published": resource("data"), "whole_models": shared / "data"}.get(name, shared / "data" / name)
    frame = read_source(READERS[name], folder)  # checks count and checksums
    assert len(frame) == READERS[name].rows
    for device in frame["device"].cat.categories:
        assert get_device(device).slug == device
    assert set(frame["stack"]) and frame["latency_ms"].median() > 0
    if name not in ("help", "justus2018"):
        for model in frame["model"].cat.categories:
            assert zoo.describe(model)
