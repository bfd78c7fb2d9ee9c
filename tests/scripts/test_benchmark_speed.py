"""The pieces of the speed benchmark that are not time itself."""

import pytest

import benchmark_speed
from gnnperf.graph import OpClass, read_graph


@pytest.mark.parametrize("operators", [1, 10, 101])
def test_a_chain_has_so_many_operators(operators):
    graph = read_graph(benchmark_speed.chain(operators))
    assert len(graph.nodes) == operators
    assert graph.nodes[0].op_class == OpClass.CONV and graph.nodes[0].macs == 28 * 28 * 64 * 64 * 9
    assert len(graph.edges) == operators - 1 and not graph.warnings


def test_a_line_is_for_each_of_many():
    line = benchmark_speed.record(
        "graphs", benchmark_speed.Spent(2.0, 4.0), "one", benchmark_speed.Spent(0.5, 0.5), share=8
    )
    assert (line["cpu_s"], line["wall_s"], line["per_second"], line["ratio"]) == (0.25, 0.5, 4.0, 0.5)


def test_a_process_has_time_and_memory_and_a_failure_ends_the_run():
    import sys

    spent, peak = benchmark_speed.process([sys.executable, "-c", "bytearray(60_000_000)"], 1)
    assert spent.cpu_s > 0 and spent.wall_s > 0 and peak > 57
    with pytest.raises(SystemExit, match="failed"):
        benchmark_speed.process([sys.executable, "-c", "raise SystemExit(3)"], 1)
