"""``gnnperf predict``: exit codes, formats, and one clear line for whatever cannot be predicted."""

import csv
import io
import json
import math
import subprocess
import sys

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from gnnperf import zoo
from gnnperf.cli.main import app
from gnnperf.cli.prediction_text import digits

KEYS = ["model", "device", "batch", "phase", "precision", "stack", "window", "optimizer", "latency_ms", "low_ms",
        "high_ms", "per_sample_ms", "throughput_per_s", "roofline_ms", "macs", "parameters", "memory", "operators",
        "warnings", "nearest", "distance", "similarity"]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a ResNet-18, a SqueezeNet with a free batch, and no network."""
    folder = tmp_path_factory.mktemp("files")
    onnx.save(zoo.build("resnet18"), folder / "resnet18.onnx")
    onnx.save(zoo.build("squeezenet1_1", "N"), folder / "squeezenet.onnx")
    (folder / "bad.onnx").write_bytes(b"no network at all")
    return folder


def run(*arguments):
    return CliRunner().invoke(app, ["predict", *map(str, arguments)])


def predictions(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_one_file_in_words(files):
    result = run(files / "resnet18.onnx", "--top", 3)
    assert result.exit_code == 0
    assert "resnet18 on 1080ti, batch 1, inference, fp32, pytorch" in result.stdout
    assert "1.81 GMACs, 11.7 M parameters" in result.stdout
    listed = result.stdout.split("slowest operators")[1].strip().splitlines()[1:]
    assert len(listed) == 3 and all(line.endswith("%") for line in listed)
    assert "Conv" not in run(files / "resnet18.onnx", "--top", 0).stdout


def test_json_has_the_documented_keys_in_order(files):
    (found,) = predictions(files / "resnet18.onnx", "--top", 5)
    assert list(found) == KEYS
    assert (found["model"], found["device"], found["batch"], found["phase"]) == ("resnet18", "1080ti", 1, "inference")
    assert (found["precision"], found["stack"], found["window"]) == ("fp32", "pytorch", "device")
    assert found["optimizer"] == "none"  # an update belongs to a training step
    assert found["latency_ms"] > 0 and found["parameters"] == 11_689_512
    assert list(found["operators"][0]) == ["name", "op_type", "op_class", "latency_ms", "share"]
    times = [operator["latency_ms"] for operator in found["operators"]]
    assert len(times) == 5 and times == sorted(times, reverse=True)


def test_files_batches_devices_and_phases_multiply_in_order(files):
    found = predictions(files / "resnet18.onnx", files / "squeezenet.onnx", "-d", "1080ti", "-d", "v100", "-b", "1,8",
                        "--phase", "both")  # fmt: skip
    assert len(found) == 2 * 2 * 2 * 2
    assert [p["batch"] for p in found[:8]] == [1] * 4 + [8] * 4
    assert [p["phase"] for p in found[:2]] == ["inference", "training"]
    assert found[1]["optimizer"] == "sgd"
    for p in found:
        assert p["throughput_per_s"] == pytest.approx(1e3 * p["batch"] / p["latency_ms"])
        assert p["per_sample_ms"] == pytest.approx(p["latency_ms"] / p["batch"])


def test_repeated_devices_and_batches_are_predicted_once(files):
    assert len(predictions(files / "resnet18.onnx", "-d", "1080ti", "-d", "GeForce GTX 1080 Ti", "-b", "4,4")) == 1


def test_csv_has_the_same_numbers_as_json(files):
    arguments = (files / "resnet18.onnx", files / "squeezenet.onnx", "--batch", "2", "--stack", "onnxruntime")
    rows = list(csv.DictReader(io.StringIO(run(*arguments, "--csv").stdout)))
    found = predictions(*arguments)
    memory = [f"memory_{part}" for part in found[0]["memory"]]
    columns = [column for key in KEYS for column in (memory if key == "memory" else [key])]
    assert list(rows[0]) == [column for column in columns if column != "operators"]
    for row, p in zip(rows, found, strict=True):
        assert float(row["latency_ms"]) == p["latency_ms"] and int(row["macs"]) == p["macs"]
        assert int(row["memory_peak_bytes"]) == p["memory"]["peak_bytes"] and row["memory_fits"] == "True"
        assert row["warnings"] == " | ".join(p["warnings"]) != ""


def test_one_bad_file_does_not_spoil_the_others(files, tmp_path):
    result = run(files / "bad.onnx", files / "resnet18.onnx", files / "none.onnx", tmp_path, "--json")
    assert result.exit_code == 1
    assert [p["model"] for p in json.loads(result.stdout)] == ["resnet18"]
    lines = result.stderr.splitlines()
    assert len(lines) == 3 and all(line.startswith("error: ") for line in lines)
    for line, name in zip(lines, ("bad.onnx", "none.onnx", str(tmp_path)), strict=True):
        assert name in line


@pytest.mark.parametrize("option", ["--json", "--csv", "--top=0"])
def test_nothing_predicted_is_an_empty_result(files, option):
    result = run(files / "bad.onnx", option)
    assert result.exit_code == 1
    assert result.stdout.strip() == ("[]" if option == "--json" else "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batch", "0"], "at least 1"),
        (["--batch", "abc"], "no list of batch sizes"),
        (["--batch", "1,,2"], "no list of batch sizes"),
        (["--json", "--csv"], "one of --json, --csv and --output"),
        (["--json", "-o", "x.csv"], "one of --json, --csv and --output"),
        (["--overwrite"], "belongs to --output"),
        (["--jobs", "0"], "at least 1"),
        (["-o", "table.xlsx"], "has to end in .csv, .jsonl, .parquet"),
        (["--phase", "sideways"], "sideways"),
        (["--stack", "paddle"], "paddle"),
        (["--dim", "seq"], "seq"),
        (["--top", "-1"], "greater than or equal to 0"),
        (["-d", "1080it"], "did you mean '1080ti'"),
        (["-d", "missing.yaml"], "missing.yaml"),
        (["--predictor", "nowhere"], "nowhere holds no valid predictor"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_what_is_wrong(files, arguments, message):
    result = run(files / "resnet18.onnx", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.output


def test_no_file_is_wrong_usage():
    assert run().exit_code == 2


def test_memory_is_shown_part_by_part(files):
    (found,) = predictions(files / "resnet18.onnx", "-b", 1024, "--phase", "training", "--optimizer", "adam")
    memory = found["memory"]
    parts = ("weights", "gradients", "optimizer", "activations", "workspace", "runtime")
    assert sum(memory[f"{part}_bytes"] for part in parts) == memory["peak_bytes"] > memory["device_bytes"] == 11 * 2**30
    assert memory["fits"] is False
    text = run(files / "resnet18.onnx", "-b", 1024, "--phase", "training", "--optimizer", "adam").stdout
    assert "does not fit in 11.0 GB" in text and all(f"{part} " in text for part in parts)
    assert "fits in 11.0 GB" in run(files / "resnet18.onnx").stdout
    assert "fit in" not in run(files / "resnet18.onnx", "-d", "xeon-gold-6226").stdout


def test_a_device_described_in_a_file(files, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "name: Mine\nkind: gpu\nsm_count: 60\ncores: 7680\nclock_mhz: 2000\nbandwidth_gb_s: 1000\nmemory_gb: 16\n"
    )
    mine, known = predictions(files / "resnet18.onnx", "-d", path, "-d", "1080ti", "-b", 32)
    assert mine["device"] == "mine" and mine["latency_ms"] < known["latency_ms"]
    assert any("Mine was not measured" in warning for warning in mine["warnings"])


def test_a_batch_that_cannot_be_had_is_said(tmp_path):
    shape = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3, 2])
    node = onnx.helper.make_node("Mul", ["x", "w"], ["y"])
    weight = onnx.numpy_helper.from_array(np.ones((3, 2), np.float32), "w")
    out = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3, 2])
    onnx.save(
        onnx.helper.make_model(onnx.helper.make_graph([node], "g", [shape], [out], [weight])), tmp_path / "m.onnx"
    )
    (found,) = predictions(tmp_path / "m.onnx", "--batch", 16)
    assert found["batch"] == 3
    assert any("batch 3 is used instead of 16" in warning for warning in found["warnings"])


def test_names_are_no_markup(files, tmp_path):
    path = tmp_path / "[red]net.onnx"
    path.write_bytes((files / "resnet18.onnx").read_bytes())
    result = run(path, tmp_path / "[bold]none.onnx")
    assert "[red]net on 1080ti" in result.stdout and "[bold]none.onnx" in result.stderr


def test_many_predictions_are_a_table_and_each_warning_is_said_once(files):
    result = run(files / "resnet18.onnx", files / "squeezenet.onnx", "-b", "1,2,4,8", "--stack", "onnxruntime")
    lines = result.stdout.splitlines()
    assert len(lines) == 9 and lines[0].split() == "model device phase batch ms 90 % samples/s".split()
    assert result.stderr.count("stack onnxruntime was not measured") == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (12345.6, "12,346"), (155.2, "155"), (9.7, "9.70"), (0.1, "0.100"), (0.00002344, "0.0000234")],
)
def test_numbers_have_three_significantdigits(value, text):
    assert digits(value) == text


def test_predicting_imports_neither_torch_nor_pandas(files):
    code = (
        "import sys\n"
        "from gnnperf.cli.main import app\n"
        f"app(['predict', {str(files / 'resnet18.onnx')!r}, '--json'], standalone_mode=False)\n"
        "print(sorted({'torch', 'pandas', 'lightning', 'torch_geometric', 'sympy', 'scipy'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "[]", result.stderr


def test_python_dash_m_and_a_closed_pipe(files):
    command = f"{sys.executable} -m gnnperf predict {files / 'resnet18.onnx'} --top 100 | head -1"
    result = subprocess.run(command, check=False, shell=True, capture_output=True, text=True)
    assert result.stdout.startswith("resnet18 on 1080ti") and result.stderr == ""


def test_help_shows_examples_and_exit_codes():
    text = CliRunner().invoke(app, ["predict", "--help"]).stdout
    assert "gnnperf predict resnet50.onnx --device 1080ti" in text and "Exit codes" in text


@pytest.mark.parametrize("batch", [1, 16])
def test_every_real_file_gives_a_positive_figure_or_one_line(shared, batch):
    paths = sorted((shared / "onnx").glob("*.onnx"))
    result = run(*paths, "--batch", batch, "--phase", "both", "--json", "--top", 1)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    found = json.loads(result.stdout)
    failures = result.stderr.splitlines()
    assert len(found) / 2 + len(failures) == len(paths) > 20
    assert all(line.startswith("error: ") for line in failures)
    for p in found:
        assert 0 < p["latency_ms"] < math.inf, p["model"]
        assert p["batch"] == batch or any("is used instead of" in warning for warning in p["warnings"])
    inference, training = found[::2], found[1::2]
    for one, other in zip(inference, training, strict=True):
        assert one["model"] == other["model"] and one["latency_ms"] <= other["latency_ms"]
