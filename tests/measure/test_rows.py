"""The table: what is written comes back, and what is no row is refused with its line."""

import math
from dataclasses import replace

import pytest

from gnnperf.conditions import Optimizer, Phase, Stack
from gnnperf.errors import DataError
from gnnperf.measure.rows import COLUMNS, MeasuredRow, RowWriter, read_rows

ROW = MeasuredRow(
    model='odd "name", 1.onnx', latency_ms=1.25, batch=8, phase=Phase.TRAINING, spread_ms=0.01, repeats=12,
    forward_ms=0.5, backward_ms=0.7, update_ms=0.05, stack=Stack.PYTORCH, framework_version="2.0",
    optimizer=Optimizer.ADAM, device="my device.yaml", threads=2, quiet=False, quiet_note="a, b; c", shapes="seq=8",
    graph_key="0" * 16, machine="ab", measured_at="2020-01-01T00:00:00Z",
)  # fmt: skip


def table(tmp_path, text):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    return path


def test_rows_come_back_as_they_were_written(tmp_path):
    path = tmp_path / "mine.csv"
    RowWriter(path).append(ROW)
    (found,) = read_rows(path)
    for name in COLUMNS:
        ours, theirs = getattr(ROW, name), getattr(found, name)
        assert ours == theirs or (math.isnan(ours) and math.isnan(theirs)), name
    assert RowWriter(path).done == {ROW.key}


def test_a_table_by_hand_needs_two_columns(tmp_path):
    (row,) = read_rows(table(tmp_path, "latency_ms,model\n3.5,resnet18\n\n"))
    assert (row.model, row.latency_ms, row.batch, row.phase, row.quiet) == ("resnet18", 3.5, 1, Phase.INFERENCE, None)


def test_a_line_that_was_cut_off_is_dropped_when_the_table_is_opened_again(tmp_path):
    path = tmp_path / "mine.csv"
    RowWriter(path).append(ROW)
    whole = path.read_bytes()
    path.write_bytes(whole + b"resnet18,,1,infer")
    assert RowWriter(path).done == {ROW.key}
    assert path.read_bytes() == whole
    path.write_bytes(whole[:20])  # inside the header
    assert RowWriter(path).done == set()
    assert path.read_text().splitlines() == [",".join(COLUMNS)]


def test_another_file_is_refused_and_left_as_it_is(tmp_path):
    path = table(tmp_path, "weights that took a week, no line break")
    with pytest.raises(DataError, match="was not written by"):
        RowWriter(path)
    assert path.read_text() == "weights that took a week, no line break"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        ("model,batch\nx,1\n", "column latency_ms is missing"),
        ("model,latency_ms,colour\nx,1,red\n", "unknown column 'colour'"),
        ("model,latency_ms\nx,1,2\n", "line 2: 3 values for 2 columns"),
        ("model,latency_ms\nx,1\ny,-3\n", "line 3: latency_ms has to be a positive number, not '-3'"),
        ("model,latency_ms\nx,nan\n", "line 2: latency_ms has to be a positive number"),
        ("model,latency_ms\n,1\n", "line 2: model is empty"),
        ("model,latency_ms,batch\nx,1,0\n", "batch has to be a whole number from 1"),
        ("model,latency_ms,phase\nx,1,forward\n", "phase has to be one of inference, training"),
        ("model,latency_ms,quiet\nx,1,maybe\n", "quiet has to be yes, no or empty"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, text, complaint):
    with pytest.raises(DataError, match=complaint):
        read_rows(table(tmp_path, text))


def test_names_in_the_tables_of_all_sources():
    key = "0123456789abcdef"
    assert MeasuredRow("resnet18@64", 1.0, graph_key=key).spec == "resnet18@64"
    assert MeasuredRow("a/My Net.onnx", 1.0, graph_key=key).spec == f"file/my_net-{key}"
    assert MeasuredRow("resnet18", 1.0, layer="conv_0", graph_key=key).spec == f"file/resnet18.conv_0-{key}"


def test_rows_of_a_busy_machine_are_measured_again_on_request(tmp_path):
    path = tmp_path / "mine.csv"
    writer = RowWriter(path)
    writer.append(replace(ROW, quiet=False))
    assert RowWriter(path).done == {ROW.key}
    again = RowWriter(path, repeat_busy=True)
    assert again.done == set()
    again.append(replace(ROW, quiet=True))
    assert RowWriter(path, repeat_busy=True).done == {ROW.key}


@pytest.mark.parametrize(
    ("line", "message"),
    [("lenet,1e300,1", "1e-06 to 1e"), ("lenet,1e-300,1", "milliseconds"), ("lenet,1,999999999", "batch is at most")],
)
def test_what_no_network_takes_is_refused(tmp_path, line, message):
    path = tmp_path / "mine.csv"
    path.write_text(f"model,latency_ms,batch\n{line}\n")
    with pytest.raises(DataError, match=message):
        read_rows(path)
