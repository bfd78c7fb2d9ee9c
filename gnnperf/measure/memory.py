"""Peak memory of a run on the processor, taken in a process of its own: others leave caches behind that hide it."""

from __future__ import annotations

import ctypes
import gc
import math
import multiprocessing
from pathlib import Path

from gnnperf.errors import GnnperfError, MeasureError
from gnnperf.measure.cases import Case

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RUNS = 3


def peak_memory_mb(case: Case) -> float:
    """Most memory held during a few runs, above what the process held before the network was loaded.

    Weights, activations and workspace count, copies that were made while loading do not. NaN on other systems than
    Linux.

    Raises:
        MeasureError: the network cannot be run, or there is too little memory for it.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_report_peak, args=(case, theirs), daemon=True)
    child.start()
    theirs.close()
    try:
        answer = ours.recv()
    except EOFError:
        raise MeasureError(f"{case.describe()}: its process ended early, probably for want of memory") from None
    finally:
        child.join()
    if isinstance(answer, str):
        raise MeasureError(answer)
    return answer


def _report_peak(case: Case, connection) -> None:
    from gnnperf.measure.runners import import_framework, make_runner

    try:
        import_framework(case)
        before_mb = _status_mb("VmRSS")
        runner = make_runner(case, case.network.load(case.batch))
        _forget()
        for _ in range(_RUNS):
            runner.run()
        connection.send(max(0.0, _status_mb("VmHWM") - before_mb))
    except GnnperfError as error:
        connection.send(str(error))


def _forget() -> None:
    """Give back what is no longer used and let the peak begin anew (proc(5))."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        _RESET.write_text("5")
    except (OSError, AttributeError, TypeError):  # another C library, or another system
        pass


def _status_mb(name: str) -> float:
    if not _STATUS.exists():
        return math.nan
    for line in _STATUS.read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) / 1024
    return math.nan
