"""Methods, folds and what is kept of them."""

import pytest
from constant_method import Constant

from gnnperf.datasets.dataset import Dataset
from gnnperf.errors import DataError
from gnnperf.evaluation.benchmark.prediction_cache import PredictionCache
from gnnperf.evaluation.benchmark.run import run_benchmark


def test_what_was_predicted_once_is_read(end_to_end, tmp_path):
    first, again, other = Constant(), Constant(), Constant(key="2")
    cache = PredictionCache(tmp_path)
    result = run_benchmark([first], end_to_end, cache)
    assert sorted(first.asked) == sorted(set(end_to_end.frame["fold"]))
    assert run_benchmark([again], end_to_end, cache).rows.equals(result.rows) and not again.asked
    run_benchmark([other], end_to_end, cache)
    assert other.asked == first.asked


def test_a_changed_table_is_not_believed(end_to_end, tmp_path):
    run_benchmark([Constant()], end_to_end, PredictionCache(tmp_path))
    table = tmp_path / "constant-headline.csv"
    table.write_text(table.read_text().replace(",10.0\n", ",11.0\n"))
    again = Constant()
    result = run_benchmark([again], end_to_end, PredictionCache(tmp_path))
    assert again.asked == ["headline"] and (result.rows["constant"] == 10).all()


def test_a_method_that_says_nothing_of_a_fold_has_no_figure_there_and_a_reason(end_to_end, tmp_path):
    result = run_benchmark([Constant(refuses="resnet")], end_to_end, PredictionCache(tmp_path))
    assert result.missing == {("constant", "resnet"): "knows nothing of it"}
    without = result.rows["constant"].isna()
    assert (without == (result.rows["fold"] == "resnet")).all()


def test_a_cache_that_cannot_be_written_is_an_error(end_to_end, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot write to"):
        run_benchmark([Constant()], end_to_end, PredictionCache(tmp_path / "file"))


def test_folds_of_one_identity_are_one_fit(end_to_end, tmp_path):
    class Shared(Constant):
        def identity(self, fold):
            return "the same"

    method = Shared()
    result = run_benchmark([method], end_to_end, PredictionCache(tmp_path))
    assert len(method.asked) == 1 and (result.rows["constant"] == 10).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["constant.csv", "constant.json"]


def test_other_rows_are_predicted_anew(end_to_end, tmp_path):
    run_benchmark([Constant()], end_to_end, PredictionCache(tmp_path))
    frame = end_to_end.frame.copy()
    frame.loc[frame["fold"] == "densenet", "latency_ms"] *= 2
    again = Constant()
    run_benchmark([again], Dataset(None, frame, end_to_end.graphs), PredictionCache(tmp_path))
    assert again.asked == ["densenet"]


def test_processes_give_what_one_gives(end_to_end, tmp_path):
    alone = run_benchmark([Constant()], end_to_end, PredictionCache(tmp_path / "one"))
    two = run_benchmark([Constant()], end_to_end, PredictionCache(tmp_path / "two"), jobs=2)
    assert two.rows.equals(alone.rows)


def test_what_is_not_fitted_is_not_kept(end_to_end, tmp_path):
    result = run_benchmark([Constant(key=None)], end_to_end, PredictionCache(tmp_path), jobs=2)
    assert (result.rows["constant"] == 10).all() and not list(tmp_path.iterdir())


def test_progress_is_told_what_is_to_come_and_what_is_done(end_to_end, tmp_path):
    class Progress:
        calls = []

        def start(self, names):
            self.calls.append(names)

        def done(self, name):
            self.calls.append(name)

        def stop(self):
            self.calls.append("stop")

    progress = Progress()
    run_benchmark([Constant()], end_to_end, PredictionCache(tmp_path), progress=progress)
    names = [f"constant-{fold}" for fold in sorted(set(end_to_end.frame["fold"]))]
    assert progress.calls == [names, *names, "stop"]
