"""What gnnperf makes of ONNX files: read, resolved, a figure, or refused and why; a line for each as Markdown.

    python scripts/coverage_table.py [--files ../shared/onnx] [--device 1080ti] [--all]

Reads every ``*.onnx`` of a folder, every model file that comes with the onnx package, and the operator cases that the
package's backend tests generate, whose results tell the true output shapes. Exit status 1 if a file breaks anything.
"""

from __future__ import annotations

import argparse
import collections
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from gnnperf import Predictor
from gnnperf.errors import GnnperfError
from gnnperf.graph import read_graph

HEADER = "| file | operators | GMACs | latency_ms | remarks |\n| --- | --- | --- | --- | --- |"


@dataclass
class Outcome:
    """What became of one model; ``kind`` is figure, partly, refused or broken."""

    name: str
    kind: str
    remarks: str = ""
    operators: int = 0
    macs: int = 0
    latency_ms: float = float("nan")

    def row(self) -> str:
        """The line of the table."""
        if self.kind in ("refused", "broken"):
            return f"| {self.name} | | | {self.kind} | {self.remarks} |"
        return f"| {self.name} | {self.operators} | {self.macs / 1e9:.3g} | {self.latency_ms:.3g} | {self.remarks} |"


def outcome(name: str, source: Path | onnx.ModelProto, predictor: Predictor, device: str) -> Outcome:
    """Read and predict one model."""
    try:
        graph = read_graph(source)
        prediction = predictor.predict(source, device=device)
    except GnnperfError as error:
        return Outcome(name, "refused", str(error).replace("|", "\\|"))
    except Exception as error:
        return Outcome(name, "broken", repr(error).replace("|", "\\|"))
    partly = graph.unknown_operators or not all(node.resolved for node in graph.nodes)
    remarks = "; ".join(graph.warnings).replace("|", "\\|")
    return Outcome(name, "partly" if partly else "figure", remarks, len(graph.nodes), graph.macs, prediction.latency_ms)


def package_files() -> Iterator[tuple[str, Path]]:
    """The model files that come with the onnx package."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data"
    for path in sorted(folder.rglob("*.onnx")):
        yield str(path.relative_to(folder)), path


def operator_cases() -> Iterator[tuple[str, onnx.ModelProto]]:
    """The cases that the onnx package generates, one or a few operators each."""
    from onnx.backend.test.case.node import collect_testcases

    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        for case in collect_testcases(None):
            yield case.name, case.model


def summary(title: str, outcomes: list[Outcome]) -> str:
    """The line of the table of counts."""
    counts = collections.Counter(item.kind for item in outcomes)
    cells = [counts[kind] for kind in ("figure", "partly", "refused", "broken")]
    return f"| {title} | {len(outcomes)} | " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    """Print the counts, then the files one by one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(__file__).resolve().parents[2] / "shared" / "onnx"
    parser.add_argument("--files", type=Path, default=shared, help="folder with ONNX files")
    parser.add_argument("--device", default="1080ti")
    parser.add_argument(
        "--all", action="store_true", help="list the package's models too, not those with remarks alone"
    )
    arguments = parser.parse_args()
    predictor = Predictor.load()

    def outcomes(models: Iterable[tuple[str, Path | onnx.ModelProto]]) -> list[Outcome]:
        return [outcome(name, source, predictor, arguments.device) for name, source in models]

    real = outcomes((path.name, path) for path in sorted(arguments.files.glob("*.onnx")))
    package, cases = outcomes(package_files()), outcomes(operator_cases())
    print("| models | read | figure | partly | refused | broken |\n| --- | --- | --- | --- | --- | --- |")
    print(summary("real files", real))
    print(summary("model files of the onnx package", package))
    print(summary("operator cases of the onnx package", cases))
    print(f"\n{HEADER}")
    for item in [*real, *(item for item in package + cases if arguments.all or item.kind != "figure")]:
        print(item.row())
    sys.exit(any(item.kind == "broken" for item in real + package + cases))


if __name__ == "__main__":
    main()
