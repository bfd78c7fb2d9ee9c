"""What is finished is never trained again, and what was killed goes on where it was."""

import signal

import numpy as np
import pandas as pd
import pytest
from lightning.pytorch.callbacks import Callback

from gnnperf.errors import DataError, TrainingError
from gnnperf.evaluation.protocols import PROTOCOLS, run
from gnnperf.evaluation.protocols.run import ROWS_FILE, read_rows, run_folds
from gnnperf.training import predictor_files
from gnnperf.training.checkpoint import Interrupted
from gnnperf.training.fit import fit


class Predictions:
    """Stands in for exported networks: the number of milliseconds depends on nothing."""

    @staticmethod
    def load(folder):
        return Predictions()

    def latencies(self, graphs, cases, campaigns=None):
        return np.full(len(graphs), 1.0 if campaigns is None else 2.0), None

    def intervals(self, graphs, cases, latency_ms):
        return np.full(len(graphs), np.nan), np.full(len(graphs), np.nan)


class Recorder:
    """Progress as a list of what was told."""

    def __init__(self):
        self.told = []

    def start(self, names, steps):
        self.told.append(("start", tuple(names), steps))

    def step(self, name, step):
        self.told.append((name, step))

    def done(self, name, rows):
        self.told.append(("done", name, len(rows)))

    def stop(self):
        self.told.append("stop")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No export, which takes longer than all steps."""
    monkeypatch.setattr(predictor_files, "export_network", lambda network, path: path.write_bytes(b"network"))
    monkeypatch.setattr(run, "Predictor", Predictions)


@pytest.fixture
def folds(varied_dataset, config):
    return PROTOCOLS["stacks"](varied_dataset.frame, config, "1080ti")


def test_rows_are_scored_by_fold_and_a_second_run_trains_nothing(varied_dataset, config, folds, tmp_path, monkeypatch):
    progress = Recorder()
    rows = run_folds(config, varied_dataset, folds, tmp_path, progress=progress)
    assert rows["fold"].tolist() == [name for fold in folds for name in [fold.name] * len(fold.test)]
    assert set(rows["stack_only_ms"]) == {1.0} and set(rows["predicted_ms"]) == {2.0}
    measured = pd.concat([fold.test for fold in folds])["latency_ms"]
    np.testing.assert_array_equal(rows["latency_ms"], measured)  # to the last digit, through the file
    mxnet, pytorch = (len(fold.test) for fold in folds)
    steps = [("mxnet", step) for step in range(5)] + [("done", "mxnet", mxnet)]
    steps += [("pytorch", step) for step in range(5)] + [("done", "pytorch", pytorch)]
    assert progress.told == [("start", ("mxnet", "pytorch"), 4), *steps, "stop"]

    monkeypatch.setattr(run, "fit", lambda *_, **__: pytest.fail("trained again"))
    again = Recorder()
    pd.testing.assert_frame_equal(run_folds(config, varied_dataset, folds, tmp_path, progress=again), rows)
    assert again.told == [("start", (), 4), ("done", "mxnet", mxnet), ("done", "pytorch", pytorch), "stop"]


def test_ctrl_c_keeps_finished_folds_and_the_next_run_continues_the_other(
    varied_dataset, config, folds, tmp_path, monkeypatch
):
    class Interrupt(Callback):
        def on_train_batch_end(self, trainer, *_):
            if trainer.global_step == 2:
                signal.raise_signal(signal.SIGINT)

    def interrupted(config, dataset, folder, *, split, callbacks):
        extra = (Interrupt(),) if folder.name == "pytorch" else ()
        return fit(config, dataset, folder, split=split, callbacks=(*callbacks, *extra))

    monkeypatch.setattr(run, "fit", interrupted)
    with pytest.raises(Interrupted):
        run_folds(config, varied_dataset, folds, tmp_path)
    assert (tmp_path / "mxnet" / ROWS_FILE).exists() and not (tmp_path / "pytorch" / ROWS_FILE).exists()
    monkeypatch.setattr(run, "fit", fit)
    progress = Recorder()
    run_folds(config, varied_dataset, folds, tmp_path, progress=progress)
    assert [told for told in progress.told if told[0] in ("mxnet", "pytorch")] == [("pytorch", 3), ("pytorch", 4)]


def test_folds_of_another_run_are_refused_before_anything_is_trained(
    varied_dataset, config, folds, tmp_path, monkeypatch
):
    run_folds(config, varied_dataset, folds[:1], tmp_path)
    monkeypatch.setattr(run, "fit", lambda *_, **__: pytest.fail("trained"))
    for other in (config.model_copy(update={"seed": 1}), config.model_copy(update={"name": "other"})):
        with pytest.raises(TrainingError, match="mxnet belongs to another configuration, seed, data or version"):
            run_folds(other, varied_dataset, folds, tmp_path)
    row = varied_dataset.frame.query("stack == 'mxnet' and model == 'resnet18'").index[0]
    fewer = PROTOCOLS["stacks"](varied_dataset.frame.drop(index=row), config, "1080ti")
    with pytest.raises(TrainingError, match="delete it to start again, or choose another --output"):
        run_folds(config, varied_dataset, fewer, tmp_path)


def test_a_damaged_table_is_one_clear_error(varied_dataset, config, folds, tmp_path):
    run_folds(config, varied_dataset, folds[:1], tmp_path)
    path = tmp_path / folds[0].name / ROWS_FILE
    assert len(read_rows(path)) == len(folds[0].test)
    path.write_text(path.read_text().replace("latency_ms", "latency"))
    with pytest.raises(DataError, match=r"rows\.csv is no table of scored rows, or damaged .*; delete it"):
        run_folds(config, varied_dataset, folds[:1], tmp_path)


def test_a_folder_that_cannot_be_written_is_one_clear_error(varied_dataset, config, folds, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingError, match="cannot write to"):
        run_folds(config, varied_dataset, folds[:1], tmp_path / "file")
