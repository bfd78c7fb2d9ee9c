"""A graph as arrays: scaling the batch is the same as reading the file at that batch."""

import numpy as np
import pytest

from gnnperf import zoo
from gnnperf.graph import OpClass, read_graph, to_arrays

# Rows of a table that is smaller than the batch of look-ups are read once only, which scaling does not know.
SMALL_TABLE_BYTES = 2 * 1024 * 4 * 8


@pytest.mark.parametrize(
    "spec",
    ["lenet5", "mobilenet_v2", "shufflenet_v2_x1_0", "nasbench201/012340", "gpt2", "bert?layers=2&hidden=64&heads=2"],
)
def test_scaling_the_batch_equals_reading_at_that_batch(spec):
    scaled = to_arrays(read_graph(zoo.build(spec, 1))).at_batch(6)
    for read in (read_graph(zoo.build(spec, 6)), read_graph(zoo.build(spec, 1), batch=6)):
        expected = to_arrays(read)
        np.testing.assert_allclose(scaled.node, expected.node, atol=SMALL_TABLE_BYTES if "bert" in spec else 0)
        np.testing.assert_allclose(scaled.edge_bytes, expected.edge_bytes)
        assert (scaled.input_bytes, scaled.output_bytes) == (expected.input_bytes, expected.output_bytes)


def test_rows_looked_up_grow_with_the_batch_but_weights_stay():
    arrays = to_arrays(read_graph(zoo.build("gpt2", 1)))
    scaled, looked_up = arrays.at_batch(3), arrays.op_class == OpClass.EMBEDDING
    before, after = arrays.column("weight_bytes"), scaled.column("weight_bytes")
    assert looked_up.any() and (after[looked_up] == 3 * before[looked_up]).all()
    assert (after[~looked_up] == before[~looked_up]).all()
