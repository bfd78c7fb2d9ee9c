"""``gnnperf predict -o``: folders into tables that stream, go on after a kill, and hold whatever failed."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import onnx
import pytest
from typer.testing import CliRunner

from gnnperf import zoo
from gnnperf.cli.main import app

SUFFIXES = (".csv", ".jsonl", ".parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three networks, one of them in a folder below, and a file that is none."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "deep").mkdir()
    for name, spec in (("a", "lenet5"), ("c", "squeezenet1_1"), ("deep/d", "nasbench201/012340")):
        onnx.save(zoo.build(spec, "N"), folder / f"{name}.onnx")
    (folder / "b.onnx").write_bytes(b"no network at all")
    (folder / "notes.txt").write_text("no model")
    return folder


def run(*arguments):
    return CliRunner().invoke(app, ["predict", *map(str, arguments)])


def rows_of(path):
    if path.suffix == ".csv":
        with path.open(newline="") as stream:
            return [{key: value or None for key, value in row.items()} for row in csv.DictReader(stream)]
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    return parquet.read_table(path).to_pylist()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_folder_becomes_a_table_with_its_errors(folder, tmp_path, suffix):
    table = tmp_path / f"out{suffix}"
    result = run(folder, "-o", table, "-b", "1,8")
    assert result.exit_code == 1 and result.stdout == ""
    assert "4 files" in result.stderr and "1 failed" in result.stderr
    rows = rows_of(table)
    names = [str(folder / name) for name in ("a.onnx", "b.onnx", "c.onnx", "deep/d.onnx")]
    assert [row["file"] for row in rows] == [names[0]] * 2 + [names[1]] + [names[2]] * 2 + [names[3]] * 2
    assert "not an ONNX file" in rows[2]["error"] and "\n" not in rows[2]["error"]
    assert all(row["error"] is None and float(row["latency_ms"]) > 0 for row in rows[:2] + rows[3:])
    assert [int(row["batch"]) for row in rows if not row["error"]] == [1, 8] * 3
    direct = json.loads(run(names[0], "-b", "1,8", "--json").stdout)
    for row, prediction in zip(rows, direct, strict=False):
        assert float(row["latency_ms"]) == pytest.approx(prediction["latency_ms"], rel=1e-4)
        memory = row["memory"]["peak_bytes"] if suffix == ".jsonl" else row["memory_peak_bytes"]
        assert int(memory) == prediction["memory"]["peak_bytes"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_second_run_reads_nothing_again_and_takes_what_is_new(folder, tmp_path, suffix, monkeypatch):
    from gnnperf import many

    table = tmp_path / f"out{suffix}"
    run(folder, "-o", table)
    before = rows_of(table)
    reads = []
    monkeypatch.setattr(
        many, "_read", lambda source, *rest, read=many._read: reads.append(source) or read(source, *rest)
    )
    again = run(folder, "-o", table)
    assert again.exit_code == 1 and "4 of them before" in again.stderr and not reads
    assert rows_of(table) == before
    new = tmp_path / "new.onnx"
    onnx.save(zoo.build("lenet5"), new)
    assert run(folder, new, "-o", table).exit_code == 1
    assert [str(path) for path in reads] == [str(new)] and len(rows_of(table)) == 5


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize("cut", [1, 7, 40, 300, 900])
def test_a_table_cut_anywhere_is_completed_to_the_same(folder, tmp_path, suffix, cut):
    whole, table = tmp_path / f"whole{suffix}", tmp_path / f"out{suffix}"
    options = ("-b", "1,2", "--top", 1)
    run(folder, "-o", whole, *options)
    run(folder, "-o", table, *options)
    content = whole.read_bytes()
    assert table.read_bytes() == content
    with table.open("r+b") as stream:
        stream.truncate(len(content) - min(cut, len(content)))
    run(folder, "-o", table, *options)
    assert [key_of(row) for row in rows_of(table)] == [key_of(row) for row in rows_of(whole)]


def key_of(row):
    return row["file"], row["error"], row.get("batch"), row.get("macs")


@pytest.mark.parametrize(
    "options",
    [["-b", "2"], ["-d", "v100"], ["--phase", "both"], ["--stack", "mxnet"], ["--input-shape", "input:1x3x32x32"]],
)
def test_other_options_do_not_go_on_with_a_table(folder, tmp_path, options):
    table = tmp_path / "out.csv"
    run(folder, "-o", table)
    content = table.read_bytes()
    result = run(folder, "-o", table, *options)
    assert result.exit_code == 2 and "made with other options" in result.stderr and "--overwrite" in result.stderr
    assert table.read_bytes() == content
    assert run(folder / "a.onnx", "-o", table, *options[:2], "--overwrite").exit_code in (0, 1)
    assert len({row["file"] for row in rows_of(table)}) == 1


def test_a_file_of_another_making_is_not_touched(folder, tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("my,own,data\n")
    result = run(folder, "-o", table)
    assert result.exit_code == 2 and "no run that could go on" in result.stderr
    assert table.read_text() == "my,own,data\n"


def test_a_table_that_cannot_be_written_is_one_line(folder, tmp_path):
    result = run(folder, "-o", tmp_path / "nowhere" / "out.csv")
    assert result.exit_code == 2 and result.stderr.startswith("error: ") and len(result.stderr.splitlines()) == 1


def test_without_pyarrow_parquet_is_one_line_before_anything_is_read(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run(folder, "-o", tmp_path / "out.parquet")
    assert result.exit_code == 2 and "needs pyarrow" in result.stderr and not list(tmp_path.iterdir())


def test_names_with_line_breaks_and_bytes_that_are_no_text_stay_one_row(tmp_path):
    content = zoo.build("lenet5").SerializeToString()
    for name in (b"two\nlines.onnx", b'comma,quote".onnx', b"latin\xe9.onnx"):
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as stream:
            stream.write(content)
    table = tmp_path / "out.csv"
    assert run(tmp_path, "-o", table).exit_code == 0
    assert len(table.read_bytes().splitlines()) == 4 == len(rows_of(table)) + 1
    assert "3 of them before" in run(tmp_path, "-o", table).stderr


def test_two_runs_do_not_write_the_same_table(folder, tmp_path):
    fcntl = pytest.importorskip("fcntl", reason="files are locked on Unix alone")
    table = tmp_path / "out.csv"
    run(folder, "-o", table)
    with table.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        about = (tmp_path / "out.csv.run.json").read_bytes()
        for options in ((), ("-d", "v100", "--overwrite")):
            result = run(folder, "-o", table, *options)
            assert result.exit_code == 2 and "another run is writing" in result.stderr
    assert (tmp_path / "out.csv.run.json").read_bytes() == about


def test_a_run_that_has_just_begun_is_another_run(folder, tmp_path):
    fcntl = pytest.importorskip("fcntl", reason="files are locked on Unix alone")
    with (tmp_path / "out.csv").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        result = run(folder, "-o", tmp_path / "out.csv")
        assert result.exit_code == 2 and "another run is writing" in result.stderr
    assert run(folder / "a.onnx", "-o", tmp_path / "out.csv").exit_code == 0


def test_processes_write_the_same_table(folder, tmp_path):
    pytest.importorskip("joblib", reason="needs joblib")
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    run(folder, "-o", one)
    assert run(folder, "-o", two, "--jobs", 2).exit_code == 1
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_killed_run_goes_on(tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow")
    models = tmp_path / "models"
    models.mkdir()
    content = zoo.build("squeezenet1_1").SerializeToString()
    names = [f"{number:03d}.onnx" for number in range(60)]
    for name in names:
        (models / name).write_bytes(content)
    table = tmp_path / f"out{suffix}"
    growing = tmp_path / f".out{suffix}.rows.jsonl" if suffix == ".parquet" else table
    command = [sys.executable, "-m", "gnnperf", "predict", str(models), "-o", str(table), "-b", "1,2"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if growing.exists() and growing.read_bytes().count(b"\n") > 20:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.005)
    assert process.wait() == -signal.SIGKILL
    with growing.open("ab") as stream:
        stream.write(growing.read_bytes().splitlines()[-1][:50])  # a line that was being written
    done = growing.read_bytes().count(b"\n")
    assert 20 < done < 120
    result = run(models, "-o", table, "-b", "1,2")
    assert result.exit_code == 0 and "of them before" in result.stderr
    rows = rows_of(table)
    assert [row["file"] for row in rows] == [str(models / name) for name in names for _ in range(2)]
    assert [int(row["batch"]) for row in rows] == [1, 2] * 60
    assert not (tmp_path / f".out{suffix}.rows.jsonl").exists()
