"""The pieces of the speed benchmark that are not time itself."""

import importlib.util
from pathlib import Path

import pytest

from gnnperf.graph import OpClass, read_graph

PATH = Path(__file__).resolve().parents[2] / "scripts" / "benchmark_speed.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("benchmark_speed", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("operators", [1, 10, 101])
def test_a_chain_has_so_many_operators(script, operators):
    graph = read_graph(script.chain(operators))
    assert len(graph.nodes) == operators
    assert graph.nodes[0].op_class == OpClass.CONV and graph.nodes[0].macs == 28 * 28 * 64 * 64 * 9
    assert len(graph.edges) == operators - 1 and not graph.warnings


def test_a_line_is_for_each_of_many(script):
    line = script.record("graphs", script.Spent(2.0, 4.0), "one", script.Spent(0.5, 0.5), share=8)
    assert (line["cpu_s"], line["wall_s"], line["per_second"], line["ratio"]) == (0.25, 0.5, 4.0, 0.5)


def test_a_process_has_time_and_memory_and_a_failure_ends_the_run(script):
    import sys

    spent, peak = script.process([sys.executable, "-c", "bytearray(60_000_000)"], 1)
    assert spent.cpu_s > 0 and spent.wall_s > 0 and peak > 57
    with pytest.raises(SystemExit, match="failed"):
        script.process([sys.executable, "-c", "raise SystemExit(3)"], 1)
