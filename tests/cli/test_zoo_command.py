import json

import onnx
import pytest
import typer
from typer.testing import CliRunner

from gnnperf import zoo
from gnnperf.cli.zoo import app

root = typer.Typer()
root.add_typer(app, name="zoo")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    return lambda *arguments: runner.invoke(root, ["zoo", *map(str, arguments)])


def batch_dim(path):
    return onnx.load(path).graph.input[0].type.tensor_type.shape.dim[0]


def test_list_has_every_name_with_its_counts(run):
    result = run("list")
    assert result.exit_code == 0
    listed = {line.split()[0]: line.split() for line in result.stdout.splitlines()[1:]}
    assert set(listed) == {*zoo.names(), *zoo.EXAMPLES}
    assert listed["vgg16"] == ["vgg16", "vgg", "224", "15.47", "138.4"]


def test_list_as_json_by_family(run):
    rows = json.loads(run("list", "--family", "alexnet", "--json").stdout)
    assert {row["family"] for row in rows} == {"alexnet"}
    assert rows[0]["spec"] == "alexnet" and rows[0]["parameters"] == 61_100_840
    assert "torchvision" in rows[0]["published_source"]
    result = run("list", "--family", "alexnett")
    assert result.exit_code == 1 and "no family" in result.stderr


def test_export_is_weightless_and_fixed_by_default(run, tmp_path):
    assert run("export", "resnet18", "--batch", 16, "--image", 64, "-o", "net.onnx").exit_code == 0
    path = tmp_path / "net.onnx"
    assert path.stat().st_size < 100_000
    assert batch_dim(path).dim_value == 16
    assert [entry.name for entry in tmp_path.iterdir()] == ["net.onnx"]


def test_export_names_the_file_after_the_spec(run, tmp_path):
    assert run("export", "nasbench201/012340", "--dynamic-batch", "--weights", "random").exit_code == 0
    path = tmp_path / "nasbench201_012340.onnx"
    onnx.checker.check_model(onnx.load(path))
    assert batch_dim(path).dim_param == "batch"


def test_export_replaces_only_by_force(run, tmp_path):
    (tmp_path / "net.onnx").write_text("mine")
    refused = run("export", "lenet", "-o", "net.onnx")
    assert refused.exit_code == 1 and "exists already" in refused.stderr
    assert (tmp_path / "net.onnx").read_text() == "mine"
    assert run("export", "lenet", "-o", "net.onnx", "--force").exit_code == 0
    assert onnx.load(tmp_path / "net.onnx").graph.name == "lenet"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["resnet5"], 1, "did you mean resnet50"),
        (["lenet", "-o", "no/such/folder/net.onnx"], 1, "cannot write"),
        (["lenet", "-o", "."], 1, "is a folder"),
        (["gpt2_xl", "--weights", "random"], 1, "without weights"),
        (["lenet", "--batch", "2", "--dynamic-batch"], 2, "choose one"),
        (["lenet", "--batch", "0"], 2, "--batch"),
    ],
)
def test_export_refuses_in_one_line(run, tmp_path, arguments, code, says):
    result = run("export", *arguments)
    assert result.exit_code == code
    assert says in result.stderr and "Traceback" not in result.output
    assert not list(tmp_path.iterdir())
