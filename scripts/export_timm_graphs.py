"""Graphs of the timm architectures that were measured, for ``gnnperf data import timm RESULTS --graphs FILE``.

    pip install --no-deps timm==1.0.31 torchvision==0.28.0      # beside the torch that gnnperf[train] takes
    python scripts/export_timm_graphs.py RESULTS FILE.npz [--models 'resnet*'] [--family resnet] [--max-gmacs 50]

RESULTS is the folder that the import takes (timm's results/ and results-history/). Every architecture goes the way of
a user's torch.nn.Module (gnnperf.from_torch), at the image size that was measured. Small networks come first and take
a second each. An interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import fnmatch
import signal
import time
import warnings
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch.utils._python_dispatch import TorchDispatchMode

from gnnperf import zoo
from gnnperf.datasets.graph_store import GraphStore
from gnnperf.datasets.readers import timm as timm_reader
from gnnperf.from_torch import read_module
from gnnperf.graph import GraphArrays, OpGraph, to_arrays

_SAVE_EVERY_S = 30
_TOLERANCE = 0.03
# torchvision wants these operators from its compiled half, which fits one build of torch alone.
_TORCHVISION = torch.library.Library("torchvision", "FRAGMENT")
_TORCHVISION_OPS = ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d")


def import_timm() -> object:
    """The timm package, with torchvision's operators declared (none is ever called)."""
    for name in ("nms", "qnms"):
        _TORCHVISION.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    for name in _TORCHVISION_OPS:
        _TORCHVISION.define(f"{name}(Tensor input) -> Tensor")
        _TORCHVISION.define(f"_{name}_backward(Tensor input) -> Tensor")
    import timm

    return timm


class WithoutInitialisation(TorchDispatchMode):
    """Leaves parameters as allocated: filling them takes longer than all the rest."""

    _SKIPPED = frozenset(
        getattr(torch.ops.aten, name)
        for name in ("normal_", "uniform_", "erfinv_", "mul_", "add_", "clamp_", "fill_", "zero_")
    )

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        if function.overloadpacket in self._SKIPPED and isinstance(arguments[0], torch.nn.Parameter):
            return arguments[0]
        return function(*arguments, **(options or {}))


def create(timm: object, spec: str) -> torch.nn.Module:
    """``timm/<name>@<image>`` with arbitrary weights."""
    name, image = zoo.split_image(spec.removeprefix("timm/"))
    with WithoutInitialisation():
        try:
            model = timm.create_model(name, exportable=True, img_size=image)  # transformers fix their image size
        except TypeError:
            model = timm.create_model(name, exportable=True)
    return model.eval()


def export(model: torch.nn.Module, image: int, batch: int = 1) -> OpGraph:
    """The graph of a network for images of ``image`` x ``image`` pixels."""
    return read_module(model, torch.zeros(batch, 3, image, image))


def check_parameters(model: torch.nn.Module, published_millions: float) -> None:
    """Refuse what has the name of a measured network alone: definitions in timm have changed.

    Raises:
        ValueError: the parameters are not as many as those that were timed.
    """
    ours = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    if abs(ours - published_millions) > 0.002 * published_millions + 0.01:
        raise ValueError(f"has {ours:.2f} M parameters, but {published_millions:.2f} M were timed")


def check_macs(arrays: GraphArrays, published_gmacs: float) -> str:
    """How the graph's multiply-accumulates differ from timm's count; "" where they agree, or timm gives none."""
    ours = arrays.column("macs").sum() / 1e9
    differ = abs(ours - published_gmacs) > _TOLERANCE * published_gmacs + 0.01
    return f"{ours:.2f} GMACs where timm says {published_gmacs:.2f}" if differ else ""


class TookTooLongError(BaseException):
    """No Exception, for which another way of exporting would be tried."""


def _give_up(signal_number: int, frame: object) -> None:
    raise TookTooLongError("took too long")


def main() -> None:
    """Export what is missing in the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="folder with timm's results/")
    parser.add_argument("file", type=Path, help="graph store to make or to add to")
    parser.add_argument("--models", default="*", help="names, with * and ?")
    parser.add_argument("--family", help="one family only")
    parser.add_argument("--max-gmacs", type=float, default=float("inf"), help="leave larger ones out")
    parser.add_argument("--limit", type=int, help="stop after so many")
    parser.add_argument("--timeout", type=int, default=60, help="seconds of processor time a model")
    arguments = parser.parse_args()

    counts = timm_reader.published_counts(arguments.results)
    store = GraphStore.load(arguments.file) if arguments.file.exists() else GraphStore()
    todo = [
        spec
        for spec in counts.sort_values("gmacs").index
        if spec not in store.names
        and fnmatch.fnmatch(zoo.split_image(spec)[0].removeprefix("timm/"), arguments.models)
        and arguments.family in (None, zoo.family(spec))
        and not counts.loc[spec, "gmacs"] > arguments.max_gmacs
    ][: arguments.limit]

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    signal.signal(signal.SIGVTALRM, _give_up)
    timm = import_timm()
    failed, differing, saved = {}, {}, time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(todo))
        for spec in todo:
            bar.update(task, description=spec)
            signal.setitimer(signal.ITIMER_VIRTUAL, arguments.timeout)
            try:
                model = create(timm, spec)
                check_parameters(model, counts.loc[spec, "parameters"])
                arrays = to_arrays(export(model, zoo.split_image(spec)[1]))
            except (Exception, TookTooLongError) as error:  # one must not stop the others
                failed[spec] = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
            else:
                if difference := check_macs(arrays, counts.loc[spec, "gmacs"]):
                    differing[spec] = difference
                store.names[spec] = store.add(arrays)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            bar.advance(task)
            if time.monotonic() - saved > _SAVE_EVERY_S:
                store.save(arguments.file)
                saved = time.monotonic()
    store.save(arguments.file)

    for spec, reason in failed.items():
        print(f"{spec}: failed: {reason}")
    for spec, difference in differing.items():
        print(f"{spec}: {difference}")
    print(
        f"{len(todo) - len(failed)} exported, {len(failed)} failed, {len(differing)} differ from timm's MACs; "
        f"{arguments.file} holds {len(store.names)} architectures, {len(store)} graphs"
    )


if __name__ == "__main__":
    main()
