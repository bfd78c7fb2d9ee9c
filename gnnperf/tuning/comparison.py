"""The winner, trained as it would ship, beside ResPerfNet on the benchmark that nothing was tuned by."""

from __future__ import annotations

from pathlib import Path

from lightning.pytorch.callbacks import Callback

from gnnperf.datasets.dataset import Dataset
from gnnperf.errors import TuningError
from gnnperf.evaluation.benchmark.markdown import benchmark_markdown
from gnnperf.evaluation.benchmark.plot import plot_benchmark
from gnnperf.evaluation.benchmark.result import Benchmark
from gnnperf.evaluation.benchmark.run import BenchmarkProgress
from gnnperf.evaluation.benchmark.suite import Inputs, benchmark_suite
from gnnperf.evaluation.card import write_card
from gnnperf.files import write_whole
from gnnperf.training.config import TrainingConfig
from gnnperf.training.fit import fit

METHODS = ("gnnperf", "refined-roofline", "resperfnet", "resperfnet-justus2018")
PREDICTOR_FOLDER = "predictor"
BENCHMARK_FILE = "benchmark.md"
BENCHMARK_PLOT_FILE = "benchmark.png"


def compare_with_resperfnet(
    winner: TrainingConfig,
    dataset: Dataset,
    folder: Path,
    resperfnet: Path | None,
    *,
    callbacks: tuple[Callback, ...] = (),
    progress: BenchmarkProgress | None = None,
) -> Benchmark:
    """Train the winner into ``folder/predictor`` and score it, ResPerfNet (Wang et al. 2020) and the refined roofline.

    Args:
        winner: with the rows and steps of the configuration that was tuned.
        dataset: measurements that winner and baselines are trained on.
        folder: of the study's results; gets ``benchmark.md`` and ``benchmark.png`` too.
        resperfnet: folder of ResPerfNet's own measurements; None: it is trained on justus2018's layers alone.
        callbacks: of the training.
        progress: of the benchmark.

    Raises:
        TuningError: the folder cannot be written.
        GnnperfError: a folder of measurements is missing or damaged.
        Interrupted: Ctrl-C in the training, which the same call continues.
    """
    split = fit(winner, dataset, folder / PREDICTOR_FOLDER, callbacks=callbacks)
    write_card(folder / PREDICTOR_FOLDER, dataset, split)
    inputs = Inputs(dataset.folder, resperfnet, None, None, folder / PREDICTOR_FOLDER, folder / "benchmark")
    result = benchmark_suite(inputs, METHODS, progress)
    try:
        write_whole(folder / BENCHMARK_FILE, benchmark_markdown(result).encode())
    except OSError as error:
        raise TuningError(f"cannot write to {folder}: {error.strerror or error}") from None
    plot_benchmark(result, folder / BENCHMARK_PLOT_FILE)
    return result
