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


def test_progress_counts_methods_and_folds(end_to_end, tmp_path):
    class Progress:
        calls = []

        def start(self, tasks):
            self.calls.append(tasks)

        def step(self, task):
            self.calls.append(task)

        def stop(self):
            self.calls.append("stop")

    progress = Progress()
    few = Dataset(None, end_to_end.frame.head(3), end_to_end.graphs)
    run_benchmark([Constant()], few, PredictionCache(tmp_path), progress)
    folds = sorted(set(few.frame["fold"]))
    assert progress.calls == [len(folds), *(f"constant, {fold}" for fold in folds), "stop"]
