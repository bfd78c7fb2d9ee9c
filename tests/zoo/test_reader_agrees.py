"""The reader and the builder count by ways of their own: both have to arrive at the same figures."""

import pytest

from gnnperf import zoo
from gnnperf.graph import read_graph


@pytest.mark.parametrize("spec", [*zoo.names(), *zoo.EXAMPLES])
def test_counts_agree(spec):
    graph, counts = read_graph(zoo.build(spec)), zoo.count(spec)
    assert graph.macs == counts.macs
    assert graph.parameters == counts.parameters - folded_positions(spec)
    assert not graph.warnings and not graph.unknown_operators
    assert all(node.resolved for node in graph.nodes)


def folded_positions(spec):
    """The reader folds the look-up of positions, whose indices are constant, and keeps the rows that are used."""
    config = getattr(zoo.describe(spec).network, "keywords", {}).get("config")
    return (config.positions - config.seq + 2 * (config.kind == "opt")) * config.hidden if config else 0


@pytest.mark.parametrize("spec", ["resnet50", "shufflenet_v2_x1_0", "nasbench201/012340", "bert_base", "gpt2?layers=2"])
def test_symbolic_batch_binds_to_what_a_fixed_one_gives(spec):
    free, fixed = read_graph(zoo.build(spec, "N"), batch=4), read_graph(zoo.build(spec, 4))
    assert (free.macs, free.flops, free.parameters) == (fixed.macs, fixed.flops, fixed.parameters)
    assert [node.output_shape for node in free.nodes] == [node.output_shape for node in fixed.nodes]
