"""From a table of scored rows to a predictor that gives intervals."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from gnnperf import Predictor, zoo
from gnnperf.conditions import Conditions, Phase
from gnnperf.datasets.graph_building import build_arrays
from gnnperf.devices import get_device
from gnnperf.errors import DataError, GnnperfError
from gnnperf.evaluation.calibration import COLUMNS, calibrate_predictor, read_rows, with_intervals
from gnnperf.evaluation.fold_rows import score_folds
from gnnperf.resources import resource
from gnnperf.training.config import TrainingConfig
from gnnperf.training.predictor_files import training_domain
from gnnperf.training.split import split_rows

FAMILIES = {"resnet": "resnet18", "densenet": "densenet121", "squeezenet": "squeezenet1_1"}


@pytest.fixture(scope="module")
def dataset(tiny_dataset):
    return tiny_dataset


@pytest.fixture(scope="module")
def rows(dataset):
    """Each family off by up to 30 %, the held-out ones by a factor of three."""
    frame = dataset.frame[dataset.frame["kind"] == "model"].astype({"family": str, "device": str, "model": str})
    frame = frame[frame["family"].isin([*FAMILIES, "alexnet", "vgg"])].reset_index(drop=True)
    held_out = frame["family"].isin(["alexnet", "vgg"])
    off = np.random.default_rng(0).normal(0, 0.15, len(frame)).clip(-0.3, 0.3)
    return frame.assign(
        fold=frame["family"].where(~held_out, "headline"),
        stack_only_ms=frame["latency_ms"] * np.exp(np.where(held_out, np.log(3), off)),
    )


@pytest.fixture(scope="module")
def uncalibrated(dataset, tmp_path_factory):
    """The shipped network, as if it had been trained on the tiny dataset."""
    folder = shutil.copytree(resource("pretrained/base"), tmp_path_factory.mktemp("tiny") / "predictor")
    (folder / "measured.json").unlink(missing_ok=True)
    config = TrainingConfig(name="tiny")
    domain = training_domain(split_rows(dataset.frame, config.data, config.seed).train, dataset.graphs)
    description = json.loads((folder / "predictor.json").read_text())
    description.pop("intervals", None)
    description |= {"config": config.model_dump(mode="json"), "domain": domain.to_dict()}
    (folder / "predictor.json").write_text(json.dumps(description))
    return folder


@pytest.fixture(scope="module")
def calibrated(uncalibrated, rows, dataset, tmp_path_factory):
    folder = shutil.copytree(uncalibrated, tmp_path_factory.mktemp("calibrated") / "predictor")
    return folder, calibrate_predictor(folder, rows, dataset)


def test_every_prediction_gets_an_interval_and_a_nearest_network(calibrated):
    predictor = Predictor.load(calibrated[0])
    for phase in ("inference", "training"):
        found = predictor.predict(zoo.build("resnet34"), phase=phase)
        assert found.low_ms < found.latency_ms < found.high_ms
        assert found.nearest.startswith("resnet18 (pytorch") and found.distance < 1
    far = predictor.predict(zoo.build("bert_base"))
    assert far.similarity == "far from" and any("nearest measured network" in text for text in far.warnings)
    near = predictor.predict(zoo.build("resnet18"))
    assert near.similarity == "close to" and near.high_ms / near.low_ms < far.high_ms / far.low_ms
    assert not any("nearest measured network" in text for text in near.warnings)


@pytest.mark.parametrize(
    ("device", "conditions"),
    [("1080", {}), ("xeon-gold-6226", {}), ("1080ti", {"stack": "theano"}), ("1080ti", {"precision": "fp64"})],
)
def test_what_was_not_measured_is_less_certain(calibrated, device, conditions):
    predictor, model = Predictor.load(calibrated[0]), zoo.build("resnet18")
    known, unknown = predictor.predict(model), predictor.predict(model, device=device, **conditions)
    assert unknown.high_ms / unknown.low_ms > 1.05 * known.high_ms / known.low_ms


def test_many_rows_at_once_are_as_one_by_one(calibrated):
    predictor = Predictor.load(calibrated[0])
    graphs = [build_arrays("resnet18"), build_arrays("vgg11").at_batch(8)]
    cases = [(get_device("1080ti"), Conditions()), (get_device("v100-pcie"), Conditions(Phase.TRAINING))]
    latency_ms, _ = predictor.latencies(graphs, cases)
    low, high = predictor.intervals(graphs, cases, latency_ms)
    for i in range(2):
        one = predictor.intervals(graphs[i : i + 1], cases[i : i + 1], latency_ms[i : i + 1])
        np.testing.assert_allclose([one[0][0], one[1][0]], [low[i], high[i]])
    assert predictor.similarities(graphs, cases)[0].nearest.family == "resnet"


def test_held_out_families_are_a_test_and_never_calibrated_on(calibrated, rows, dataset, tmp_path):
    folder, found = calibrated
    of_test = found.coverage[found.coverage["role"] == "test"]
    assert set(of_test["fold"]) == {"headline"} and (of_test["coverage"] == 0).all()
    left_out = found.coverage[found.coverage["role"] == "left out"]
    assert set(left_out["fold"]) == set(FAMILIES) and left_out["coverage"].mean() > 0.9
    again = shutil.copytree(folder, tmp_path / "again")
    without = calibrate_predictor(again, rows[rows["fold"] != "headline"], dataset)
    assert without.intervals == found.intervals
    assert found.intervals.quantile["inference"] * found.intervals.coefficients["constant"] < np.log(3)


def test_a_row_of_a_fold_is_not_covered_by_its_own_scores(calibrated, rows, dataset, tmp_path):
    worse = rows.assign(stack_only_ms=rows["stack_only_ms"].where(rows["fold"] != "resnet", rows["latency_ms"] * 5))
    found = calibrate_predictor(shutil.copytree(calibrated[0], tmp_path / "p"), worse, dataset)
    covered = found.coverage.set_index(["role", "fold", "phase"])["coverage"]
    assert covered["left out", "resnet", "inference"] == 0
    assert covered["left out", "densenet", "inference"] == 1


def test_distance_is_to_other_families_alone(calibrated):
    found = calibrated[1].rows
    assert (found["distance"] > 0.3).all()


def test_the_description_keeps_the_rest_and_says_how_it_was_calibrated(uncalibrated, calibrated):
    before = json.loads((uncalibrated / "predictor.json").read_text())
    after = json.loads((calibrated[0] / "predictor.json").read_text())
    intervals = after.pop("intervals")
    assert after == before
    assert intervals["coverage"] == 0.9 and intervals["folds"]["training"] == sorted(FAMILIES)
    assert {row["fold"] for row in intervals["coverage_by_fold"]} == {*FAMILIES, "headline"}
    assert (calibrated[0] / "measured.json").stat().st_size < 150_000


def test_a_predictor_without_calibration_and_measured_networks_says_nothing(uncalibrated, tmp_path):
    folder = shutil.copytree(uncalibrated, tmp_path / "p")
    (folder / "measured.json").unlink(missing_ok=True)
    predictor = Predictor.load(folder)
    found = predictor.predict(zoo.build("resnet18"))
    assert (found.low_ms, found.high_ms, found.nearest, found.distance, found.similarity) == (None,) * 5
    graph, case = [build_arrays("resnet18")], [(get_device("1080ti"), Conditions())]
    assert np.isnan(predictor.intervals(graph, case, np.ones(1))).all()
    assert predictor.similarities(graph, case) is None


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("predictor.json", {"intervals": {}}),
        ("predictor.json", {"intervals": 3}),
        ("predictor.json", {"intervals": {"coefficients": {"constant": -1}, "quantile": {}}}),
        ("measured.json", {"networks": [[1]]}),
        ("measured.json", {"unit": None}),
        ("measured.json", "junk"),
    ],
)
def test_damaged_files_are_one_line(calibrated, tmp_path, name, change):
    folder = shutil.copytree(calibrated[0], tmp_path / "p")
    path = folder / name
    path.write_text(change if isinstance(change, str) else json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(GnnperfError) as error:
        Predictor.load(folder)
    assert str(folder) in str(error.value) and "\n" not in str(error.value)


def test_too_few_folds_and_unknown_names_are_one_line(calibrated, rows, dataset, tmp_path):
    folder = shutil.copytree(calibrated[0], tmp_path / "p")
    before = (folder / "predictor.json").read_bytes()
    for bad, said in (
        (rows[rows["fold"].isin(["resnet", "headline"])], "at least 3 folds"),
        (rows.assign(device="no-such-card"), "no-such-card"),
        (rows.assign(stack="no-such-stack"), "no-such-stack"),
        (rows.assign(model="no-such-model"), "no-such-model"),
    ):
        with pytest.raises(GnnperfError, match=said) as error:
            calibrate_predictor(folder, bad, dataset)
        assert "\n" not in str(error.value)
    assert (folder / "predictor.json").read_bytes() == before


def test_rows_of_an_evaluation_get_the_intervals_of_the_other_folds(calibrated, rows, dataset):
    config = TrainingConfig(name="tiny")
    shuffled = rows.sample(frac=1, random_state=1)  # rows keep their places
    found = with_intervals(shuffled, dataset, config)
    expected = calibrated[1].rows.loc[shuffled.index]
    np.testing.assert_allclose(found[["low_ms", "high_ms"]], expected[["low_ms", "high_ms"]])
    few = with_intervals(rows[rows["fold"].isin(["resnet", "densenet"])], dataset, config)
    assert few[["low_ms", "high_ms"]].isna().all(axis=None)


def test_folds_predict_the_rows_that_they_did_not_see(uncalibrated, dataset, tmp_path):
    for family in FAMILIES:
        folder = shutil.copytree(uncalibrated, tmp_path / "folds" / f"without {family}")
        description = json.loads((folder / "predictor.json").read_text())
        description["config"]["data"]["held_out_families"] += [family]
        (folder / "predictor.json").write_text(json.dumps(description))
    scored = score_folds(tmp_path / "folds", uncalibrated, dataset)
    assert scored.groupby("fold")["family"].unique().map(list).to_dict() == {
        **{f"without {family}": [family] for family in FAMILIES},
        **{family: [family] for family in ("alexnet", "lenet", "vgg")},
    }
    models = dataset.frame[(dataset.frame["kind"] == "model") & (dataset.frame["family"] != "nasbench201")]
    assert len(scored) == len(models)
    row = scored.iloc[0]
    predicted = Predictor.load(uncalibrated).predict(
        zoo.build(row["model"]), device=row["device"], batch=int(row["batch"]), phase=row["phase"], optimizer="none"
    )
    assert row["stack_only_ms"] == pytest.approx(predicted.latency_ms, rel=1e-3)
    with pytest.raises(DataError, match="trained without a family"):
        score_folds(tmp_path / "nothing", uncalibrated, dataset)


def test_reading_rows(rows, tmp_path):
    table = rows[list(COLUMNS)]
    for name, part in (("a.csv", table.iloc[:5]), ("b.csv", table.iloc[5:])):
        part.to_csv(tmp_path / name, index=False)
    again = read_rows([tmp_path / "a.csv", tmp_path / "b.csv"])
    pd.testing.assert_frame_equal(again, table.astype(again.dtypes.to_dict()), check_exact=False)
    table.drop(columns="fold").to_csv(tmp_path / "lacks.csv", index=False)
    table.assign(stack_only_ms=np.nan).to_csv(tmp_path / "nan.csv", index=False)
    (tmp_path / "empty.csv").write_bytes(b"")
    for name, said in (("lacks.csv", "lacks fold"), ("nan.csv", "stack_only_ms"), ("empty.csv", "empty.csv"),
                       ("missing.csv", "missing.csv")):  # fmt: skip
        with pytest.raises(DataError, match=said):
            read_rows([tmp_path / name])
