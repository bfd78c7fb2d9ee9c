"""``gnnperf inspect`` and its size options."""

import json

import pytest
import typer
from onnx import TensorProto, helper, save
from typer.testing import CliRunner

from gnnperf.cli.inspect import inspect_model
from gnnperf.cli.shape_options import parse_dims, parse_input_shapes

app = typer.Typer(rich_markup_mode="rich")
app.command()(inspect_model)


@pytest.fixture
def path(tmp_path):
    weight = helper.make_tensor("w", TensorProto.FLOAT, [16, 3, 3, 3], [0.0] * 432)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["h"], name="stem"),
        helper.make_node("Relu", ["h"], ["y"], name="act"),
    ]
    shape = ["batch", 3, "height", 10]
    graph = helper.make_graph(
        nodes, "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weight],
    )  # fmt: skip
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "net.onnx")
    return str(tmp_path / "net.onnx")


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_tables(path):
    result = run(path, "--all")
    assert result.exit_code == 0
    for text in ("stem", "act", "conv", "activation", "MACs", "height = 224", "1x16x222x8"):
        assert text in result.output


def test_top_limits_the_operators(path):
    output = run(path, "--top", "1").output
    assert "stem" in output and "act " not in output


def test_json_is_one_object(path):
    result = run(path, "--json", "--batch", "4", "--dim", "height=10")
    summary = json.loads(result.stdout)
    assert summary["batch"] == 4 and summary["assumptions"] == {} and summary["warnings"] == []
    assert summary["inputs"] == [{"name": "x", "shape": [4, 3, 10, 10], "dtype": "float32", "bytes": 4800}]
    assert summary["totals"]["macs"] == 4 * 64 * 16 * 27 == summary["classes"]["conv"]["macs"]
    assert [operator["name"] for operator in summary["operators"]] == ["stem", "act"]
    assert summary["operators"][0]["gemm"] == [256, 16, 27, 1]


def test_input_shape(path):
    summary = json.loads(run(path, "--json", "--input-shape", "x:2x3x20x20").stdout)
    assert summary["batch"] == 2 and summary["outputs"][0]["shape"] == [2, 16, 18, 18]


@pytest.mark.parametrize("arguments", [("--batch", "0"), ("--dim", "depth=3"), ("--input-shape", "z:1x3")])
def test_what_does_not_fit_is_one_line(path, arguments):
    result = run(path, *arguments)
    assert result.exit_code == 1 and result.stderr.startswith("error:") and result.stderr.count("\n") == 1


def test_missing_file_is_one_line(tmp_path):
    result = run(str(tmp_path / "none.onnx"))
    assert result.exit_code == 1 and "there is no file" in result.stderr and "Traceback" not in result.output


@pytest.mark.parametrize("option", ["height", "height=", "=3", "height=-1", "height=0", "height=2.5", "height=x"])
def test_bad_dims(option):
    with pytest.raises(typer.BadParameter, match="NAME=N"):
        parse_dims([option])


@pytest.mark.parametrize("option", ["1x3", "x:", ":1x3", "x:1xx3", "x:0x3", "x:-1x3"])
def test_bad_input_shapes(option):
    with pytest.raises(typer.BadParameter, match="NAME:SHAPE"):
        parse_input_shapes([option])


def test_names_may_hold_separators():
    assert parse_dims(["a=b=3"]) == {"a=b": 3}
    assert parse_input_shapes(["in:0:1x8", "ids:4,128"]) == {"in:0": (1, 8), "ids": (4, 128)}
    with pytest.raises(typer.BadParameter, match="twice"):
        parse_dims(["a=1", "a=2"])
    with pytest.raises(typer.BadParameter, match="twice"):
        parse_input_shapes(["a:1", "a:2"])
