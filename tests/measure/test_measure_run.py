"""Measuring into a table: both frameworks, resumption, failures, layers, and the way into a dataset."""

import os
import signal
import subprocess
import sys
import time

import pytest
from onnx import TensorProto, helper, save

from gnnperf import zoo
from gnnperf.conditions import Phase, Stack, Window
from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.importing import import_measured
from gnnperf.errors import DataError, MeasureError
from gnnperf.measure.cases import Campaign
from gnnperf.measure.models import Network
from gnnperf.measure.protocol import Settings
from gnnperf.measure.rows import read_rows
from gnnperf.measure.run import measure

FAST = Settings(fewest=2, most=3, most_s=0.01, most_warm_up_s=0.0)
BOTH = (Phase.INFERENCE, Phase.TRAINING)


def run(table, *names, **options):
    networks = [Network(str(name)) for name in names]
    return measure(Campaign(networks, device="1080ti", **options).cases(), table, FAST)


@pytest.fixture
def weightless_file(tmp_path):
    path = tmp_path / "Mine.onnx"
    save(zoo.build("squeezenet1_1@32", "N"), path)
    return path


def test_files_and_architectures_in_both_phases(tmp_path, weightless_file):
    table = tmp_path / "mine.csv"
    outcome = run(table, weightless_file, "lenet5", phases=BOTH, batches=(1, 2))
    rows = read_rows(table)
    assert not outcome.failed and len(rows) == len(outcome.rows) == 8
    for row in rows:
        in_torch = row.phase == Phase.TRAINING
        assert row.stack == (Stack.PYTORCH if in_torch else Stack.ONNXRUNTIME)
        assert row.latency_ms > 0 and row.quiet is not None and row.machine
        if in_torch:
            assert row.forward_ms + row.backward_ms + row.update_ms < 3 * row.latency_ms
            assert min(row.forward_ms, row.backward_ms, row.update_ms) > 0
    assert len({row.graph_key for row in rows}) == 2  # of two networks, whatever the batch


def test_finished_rows_are_not_measured_again(tmp_path):
    table = tmp_path / "mine.csv"
    run(table, "lenet5", batches=(1,))
    before = table.read_bytes()
    outcome = run(table, "lenet5", batches=(1, 4))
    assert outcome.skipped == 1 and [row.batch for row in outcome.rows] == [4]
    assert table.read_bytes().startswith(before)


def test_a_table_that_another_process_measures_into_is_left_to_it(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    table = tmp_path / "mine.csv"
    run(table, "lenet5")
    before = table.read_bytes()
    with table.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(DataError, match="another process is measuring"):
            run(table, "squeezenet1_1@32")
    assert table.read_bytes() == before
    assert run(table, "lenet5").skipped == 1


def test_a_killed_measurement_continues(tmp_path):
    table = tmp_path / "mine.csv"
    batches = list(range(1, 16))
    command = [sys.executable, "-m", "gnnperf", "measure", "lenet5", "-o", str(table), "--device", "1080ti",
               "--batch", ",".join(map(str, batches)), "--seconds", "0.3", "--precision", "0.001"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        deadline = time.monotonic() + 300
        while child.poll() is None and time.monotonic() < deadline:
            if table.exists() and table.read_bytes().count(b"\n") >= 3:
                break
            time.sleep(0.02)
        os.kill(child.pid, signal.SIGKILL)
    done = [row.batch for row in read_rows(table)]
    assert 2 <= len(done) < len(batches), "it was not killed in the middle"
    outcome = run(table, "lenet5", batches=batches)
    assert outcome.skipped == len(done)
    assert [row.batch for row in read_rows(table)] == batches


def test_what_fails_is_told_and_the_rest_is_measured(tmp_path):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"nothing of the kind")
    node = helper.make_node("Hardmax", ["x"], ["y"])
    shape = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4]) for name in "xy"]
    odd = tmp_path / "odd.onnx"
    save(helper.make_model(helper.make_graph([node], "odd", shape[:1], shape[1:]), ir_version=8), odd)
    table = tmp_path / "mine.csv"
    outcome = run(table, broken, odd, "lenet6", "lenet5", phases=BOTH)
    assert [(row.model, str(row.phase)) for row in read_rows(table)] == [
        (str(odd), "inference"), ("lenet5", "inference"), ("lenet5", "training"),
    ]  # fmt: skip
    assert len(outcome.failed) == 3 and not any("\n" in problem for problem in outcome.failed)
    assert "not an ONNX file" in outcome.failed[0] and "Hardmax" in outcome.failed[1] and "lenet5" in outcome.failed[2]


def test_layers_by_themselves(tmp_path):
    table = tmp_path / "layers.csv"
    outcome = run(table, "lenet5", per_layer=True, phases=BOTH, batches=(4,))
    rows = read_rows(table)
    assert not outcome.failed
    kinds = ["conv_0", "Tanh_0", "AveragePool_0", "conv_1", "Tanh_1", "AveragePool_1", "linear_0", "Tanh_2",
             "linear_1", "Tanh_3", "linear_2"]  # fmt: skip
    for phase in BOTH:
        assert [row.layer for row in rows if row.phase == phase] == kinds
    assert run(table, "lenet5", per_layer=True, phases=BOTH, batches=(4,)).rows == []


def test_a_layer_that_cannot_train_does_not_stop_those_behind_it(tmp_path):
    path, table = tmp_path / "mixed.onnx", tmp_path / "layers.csv"
    nodes = [
        helper.make_node("ArgMax", ["x"], ["a"], name="first"),
        helper.make_node("Relu", ["x"], ["b"], name="last"),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])]
    outputs = [helper.make_tensor_value_info("a", TensorProto.INT64, None),
               helper.make_tensor_value_info("b", TensorProto.FLOAT, None)]  # fmt: skip
    save(helper.make_model(helper.make_graph(nodes, "mixed", inputs, outputs), ir_version=8), path)
    outcome = run(table, path, per_layer=True, phases=(Phase.TRAINING,))
    assert [row.layer for row in read_rows(table)] == ["last"]
    assert len(outcome.failed) == 1 and "first" in outcome.failed[0]


def test_a_measured_table_becomes_a_source(tmp_path, weightless_file):
    table, layers = tmp_path / "mine.csv", tmp_path / "layers.csv"
    run(table, weightless_file, "lenet5", phases=BOTH, batches=(2,))
    run(layers, "lenet", "dense/c32-f10-bias", per_layer=True, batches=(2,))
    for path in (table, layers):  # whatever else this machine does
        path.write_text(path.read_text().replace(",no,", ",yes,"))
    weightless_file.unlink()
    dataset = Dataset.open_or_create(tmp_path / "data")
    assert import_measured(table, dataset, processes=1) == 2 * 4
    import_measured(layers, dataset, processes=1)
    dataset = Dataset.open(tmp_path / "data")

    frame = dataset.frame[dataset.frame["source"] == "measured-mine"].astype({"model": str, "phase": str})
    assert set(frame["phase"]) == {"inference", "training", "forward", "backward"}
    assert set(frame["family"].astype(str)) == {"mine", "lenet"} and set(frame["device"].astype(str)) == {"1080ti"}
    step, part = (frame[(frame["phase"] == phase) & (frame["model"] == "lenet5")] for phase in ("training", "forward"))
    assert part["latency_ms"].item() < step["latency_ms"].item()
    file_rows = frame[frame["family"] == "mine"]
    graph = dataset.graphs[file_rows["graph_key"].iloc[0]]
    assert graph.column("macs").sum() == zoo.count("squeezenet1_1@32").macs
    parts = dataset.frame[dataset.frame["source"] == "measured-layers"]
    assert (parts["kind"] == "layer").all() and len(parts) == 7 + 1
    dense = dataset.graphs[parts.loc[parts["family"] == "dense_c32_f10_bias.linear_0", "graph_key"].item()]
    assert dense.at_batch(2).column("macs").sum() == 2 * 32 * 10


def test_single_layers_of_the_zoo_are_layers_not_models(tmp_path):
    table = tmp_path / "mine.csv"
    layers = ("conv/i56-c64-f128-k3-s1-same", "dense/c32-f10-bias", "pool/i57-c8-k4-s3-same-average")
    lines = [f"{name},1,1080ti" for name in (*layers, "lenet5")]
    table.write_text("\n".join(["model,latency_ms,device", *lines, ""]))
    dataset = Dataset.open_or_create(tmp_path / "data")
    import_measured(table, dataset, processes=1)
    frame = dataset.frame.astype({"model": str, "kind": str})
    assert set(frame.loc[frame["kind"] == "layer", "model"]) == set(layers)


def test_busy_rows_are_left_out_of_a_source(tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("model,latency_ms,device,quiet\nlenet5,1,1080ti,no\nlenet5,1,1080ti,\n")
    dataset = Dataset.open_or_create(tmp_path / "data")
    assert import_measured(table, dataset, processes=1) == 1
    table.write_text("model,latency_ms,device,quiet\nlenet5,1,1080ti,no\n")
    with pytest.raises(DataError, match="busy during all 1"):
        import_measured(table, dataset, processes=1)


def test_a_row_without_device_or_graph_is_refused(tmp_path):
    table = tmp_path / "mine.csv"
    dataset = Dataset.open_or_create(tmp_path / "data")
    table.write_text("model,latency_ms\nlenet5,1\n")
    with pytest.raises(DataError, match="names no device"):
        import_measured(table, dataset, processes=1)
    table.write_text("model,latency_ms,device\nx.onnx,1,1080ti\n")
    with pytest.raises(DataError, match="is a file or has a layer"):
        import_measured(table, Dataset.open_or_create(tmp_path / "data"))
    table.write_text(f"model,latency_ms,device,graph_key\nx.onnx,1,1080ti,{'0' * 16}\n")
    with pytest.raises(DataError, match="graph of file/x-0000000000000000 is not beside it"):
        import_measured(table, dataset, processes=1)


def test_campaigns_that_make_no_sense_are_refused():
    with pytest.raises(MeasureError, match="no backend 'tvm'"):
        Campaign([], backend="tvm")
    with pytest.raises(MeasureError, match="needs a GPU"):
        Campaign([], window=Window.PINNED_COPY)
    with pytest.raises(MeasureError, match="onnxruntime measures"):
        Campaign([], backend="onnxruntime-cuda", window=Window.PINNED_COPY)
    with pytest.raises(MeasureError, match="PyTorch measures"):
        Campaign([], backend="torch-cuda", window=Window.SESSION)


def test_a_file_with_a_fixed_batch_is_measured_at_others(tmp_path):
    path = tmp_path / "fixed.onnx"
    save(zoo.build("shufflenet_v2_x0_5@32", 1), path)
    outcome = run(tmp_path / "mine.csv", path, batches=(3,), phases=BOTH)
    assert not outcome.failed and {row.batch for row in outcome.rows} == {3}
