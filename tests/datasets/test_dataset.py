import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from gnnperf.cli.data import app
from gnnperf.datasets.checking import check_dataset
from gnnperf.datasets.dataset import Dataset
from gnnperf.datasets.graph_building import build_arrays
from gnnperf.datasets.graph_store import GraphStore
from gnnperf.datasets.importing import Progress, import_source
from gnnperf.datasets.readers import READERS
from gnnperf.errors import DataError

DLINFBENCH = READERS["dlinfbench"]


@pytest.fixture
def source_folder(tmp_path):
    folder = tmp_path / "raw" / "dlinfbench" / "results" / "gtx_1080_ti"
    folder.mkdir(parents=True)
    for network, speed in (("alexnet", 2000.0), ("vgg16", 250.0)):
        for batch in (1, 8):
            (folder / f"pytorch_{network}_{batch}.txt").write_text(f"pytorch {network} {batch} {speed} 900")
    return tmp_path / "raw" / "dlinfbench"


@pytest.fixture
def dataset(source_folder, tmp_path) -> Dataset:
    dataset = Dataset.open_or_create(tmp_path / "data")
    import_source(DLINFBENCH, source_folder, dataset, verify=False, processes=1)
    return dataset


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_an_import_is_there_when_opened_again(dataset):
    again = Dataset.open(dataset.folder)
    pd.testing.assert_frame_equal(again.frame, dataset.frame)
    assert len(again) == 4 and len(again.graphs) == 2
    for key, model in zip(again.frame["graph_key"], again.frame["model"], strict=True):
        gmacs = again.graphs[key].column("macs").sum() / 1e9
        assert gmacs == pytest.approx({"vgg16": 15.47, "alexnet@227": 0.73}[model], rel=0.03)


def test_importing_again_replaces_the_source_and_keeps_others(dataset, source_folder):
    other = dataset.frame.assign(source="other")
    dataset.replace_source("other", other)
    (source_folder / "results/gtx_1080_ti/pytorch_vgg16_8.txt").unlink()
    seen = []
    progress = Progress(start=seen.append, advance=seen.append)
    assert import_source(DLINFBENCH, source_folder, dataset, False, progress) == 3
    assert seen == [2, 1, 1]
    assert Dataset.open(dataset.folder).frame["source"].value_counts().to_dict() == {"other": 4, "dlinfbench": 3}


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError("disk full")])
def test_a_failed_import_leaves_the_old_table(dataset, source_folder, monkeypatch, failure):
    before = Dataset.open(dataset.folder).frame

    def fail(self, *args, **kwargs):
        raise failure

    monkeypatch.setattr(pd.DataFrame, "to_parquet", fail)
    with pytest.raises((KeyboardInterrupt, DataError)):
        import_source(DLINFBENCH, source_folder, dataset, verify=False)
    pd.testing.assert_frame_equal(Dataset.open(dataset.folder).frame, before)
    assert sorted(path.name for path in dataset.folder.iterdir()) == ["graphs.npz", "measurements.parquet"]


def test_a_half_written_table_is_one_error(dataset):
    path = dataset.folder / "measurements.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"damaged.*import the sources again"):
        Dataset.open(dataset.folder)
    result = run("stats", "--to", dataset.folder)
    assert result.exit_code == 1 and result.stderr.startswith("error: the table") and result.stderr.count("\n") == 1


def test_a_missing_graph_store_is_an_error(dataset):
    (dataset.folder / "graphs.npz").unlink()
    with pytest.raises(DataError, match="cannot read the graph store"):
        len(Dataset.open(dataset.folder).graphs)


def test_rows_without_graphs_are_refused(dataset):
    with pytest.raises(DataError, match="1 graphs of dlinfbench were never built"):
        dataset.replace_source("dlinfbench", dataset.frame.assign(graph_key=pd.Categorical(["0123"] * 4)))


def test_check_finds_bad_rows_missing_graphs_and_wrong_counts(dataset):
    frame = dataset.frame.assign(source="other")
    sound = Dataset(dataset.folder, frame)
    sound.graphs = dataset.graphs
    assert check_dataset(sound) == []
    assert check_dataset(dataset) == ["dlinfbench has 4 rows, its known version gives 770"]
    sound.frame = frame.assign(latency_ms=[1.0, np.nan, 1.0, 1.0])
    assert "row 1: latency_ms" in check_dataset(sound)[0]
    sound.frame = frame.assign(graph_key=pd.Categorical(["0123"] * 4))
    assert "4 rows refer to graphs" in check_dataset(sound)[0]


def test_opening_a_folder_without_a_table_tells_what_to_do(tmp_path):
    with pytest.raises(DataError, match="gnnperf data import"):
        Dataset.open(tmp_path)


def test_command_line_imports_published_rows_and_checks_them(tmp_path):
    folder = tmp_path / "data"
    result = run("import", "published", "--to", folder)
    assert result.exit_code == 0, result.stderr
    assert f"published: {READERS['published'].rows} rows" in result.stdout
    stats = json.loads(run("stats", "--to", folder, "--json").stdout)
    assert stats["rows"] == READERS["published"].rows and {"vgg", "lenet", "alexnet"} <= set(stats["families"])
    assert sum(row["rows"] for row in stats["counts"]) == stats["rows"]
    assert "1080ti" in run("stats", "--to", folder).stdout
    assert "are sound" in run("check", "--to", folder).stdout


def test_command_line_imports_all_folders_there_are(source_folder, tmp_path):
    result = run("import", "all", source_folder.parent, "--to", tmp_path / "x", "--no-verify")
    assert result.exit_code == 0 and "dlinfbench: 4 rows" in result.stdout, result.stderr
    result = run("check", "--to", tmp_path / "x")
    assert result.exit_code == 1 and "4 rows, its known version gives 770" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["import", "abacus", "."], "unknown source 'abacus'"),
        (["import", "help"], "gnnperf data import help PATH"),
        (["import", "help", "/absent"], "/absent does not exist"),
        (["import", "all", "/absent"], "no folder that is named like a source"),
        (["check", "--to", "/absent"], "no measurements in /absent"),
    ],
)
def test_command_line_tells_errors_in_one_line(arguments, message, tmp_path):
    result = run(*arguments, *([] if arguments[0] == "check" else ["--to", tmp_path / "data"]))
    assert result.exit_code == 1
    assert message in " ".join(result.stderr.split()) and result.stderr.count("\n") == 1


@pytest.fixture
def timm_folder(tmp_path):
    (tmp_path / "raw" / "timm" / "results").mkdir(parents=True)
    (tmp_path / "raw/timm/results/benchmark-infer-amp-nchw-pt291-cu130-5090.csv").write_text(
        "model,infer_img_size,infer_samples_per_sec,infer_step_time,infer_batch_size,param_count,infer_gmacs,infer_macts\n"
        "resnet18,160,2000.0,128.0,256,11.69,0.93,1.27\nresnet18,224,1000.0,256.0,256,11.69,1.82,2.48\n"
        "resnet34,224,500.0,512.0,256,21.8,3.67,3.74\n"
    )
    return tmp_path / "raw" / "timm"


@pytest.fixture
def timm_graphs(tmp_path):
    """A file that holds two of the three networks."""
    store = GraphStore()
    for image in (160, 224):
        store.names[f"timm/resnet18@{image}"] = store.add(build_arrays(f"resnet18@{image}"))
    store.save(tmp_path / "timm_graphs.npz")
    return tmp_path / "timm_graphs.npz"


def test_made_graphs_are_taken_and_rows_without_are_counted(timm_folder, timm_graphs, tmp_path):
    result = run("import", "timm", timm_folder, "--to", tmp_path / "x", "--no-verify", "--graphs", timm_graphs)
    assert result.exit_code == 0, result.stderr
    assert "timm: 2 rows, 1 skipped without a graph" in result.stdout
    dataset = Dataset.open(tmp_path / "x")
    assert dataset.frame["model"].tolist() == ["timm/resnet18@160", "timm/resnet18@224"]
    gmacs = [dataset.graphs[key].column("macs").sum() / 1e9 for key in dataset.frame["graph_key"]]
    assert gmacs == pytest.approx([0.93, 1.82], rel=0.03)
    assert check_dataset(dataset) == []


def test_networks_that_the_zoo_lacks_need_their_graphs(timm_folder, timm_graphs, tmp_path, source_folder):
    arguments = ("--to", tmp_path / "x", "--no-verify")
    GraphStore().save(tmp_path / "none.npz")
    result = run("import", "timm", timm_folder, *arguments, "--graphs", tmp_path / "none.npz")
    assert result.exit_code == 1 and result.stderr.count("\n") == 1
    assert "scripts/export_timm_graphs.py, then import with --graphs FILE" in result.stderr
    table = timm_folder / "results/benchmark-infer-amp-nchw-pt291-cu130-5090.csv"
    table.write_text(table.read_text().replace("resnet18", "resnet26"))
    result = run("import", "timm", timm_folder, *arguments, "--graphs", timm_graphs)
    assert result.exit_code == 1 and "holds none of the networks, such as timm/resnet26@160" in result.stderr


def test_graphs_that_ship_are_used_without_a_word(timm_folder, tmp_path, source_folder):
    result = run("import", "all", source_folder.parent, "--to", tmp_path / "x", "--no-verify")
    assert result.exit_code == 0, result.stderr
    assert "dlinfbench: 4 rows" in result.stdout and "timm: 3 rows" in result.stdout


def test_list_names_every_source():
    assert {item["name"] for item in json.loads(run("list", "--json").stdout)} == set(READERS)
    assert "Apache-2.0" in run("list").stdout
