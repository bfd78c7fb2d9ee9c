"""If, Loop and Scan: bodies are counted as often as they run."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx_models import INT64, model, value, weight

from gnnperf.graph import OpClass, read_graph

BOOL = TensorProto.BOOL


def body(nodes, outputs, inputs=()):
    return helper.make_graph(nodes, "body", list(inputs), [value(name, None) for name in outputs])


def branch(op_type: str, *operands: str):
    return body([helper.make_node(op_type, operands, ["b"])], ["b"])


def test_unknown_condition_counts_the_expensive_branch():
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("Relu", "x"), else_branch=branch("MatMul", "x", "w"))
    source = model([node, helper.make_node("Exp", ["y"], ["z"])], [value("x", [4, 8]), value("c", [], BOOL)], ["z"],
                   [weight("w", 8, 8)])  # fmt: skip
    graph = read_graph(source)
    assert [n.op_type for n in graph.nodes] == ["MatMul", "If", "Exp"]
    assert graph.nodes[1].op_class == OpClass.CONTROL_FLOW and graph.macs == 256
    assert [(e.source, e.target) for e in graph.edges] == [(0, 1), (1, 2)]
    assert "more expensive branch ('else'" in graph.warnings[0]


def test_known_condition_takes_its_branch():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("ReduceProd", ["s"], ["n"], keepdims=0),
        helper.make_node("Equal", ["n", "limit"], ["c"]),
        helper.make_node("If", ["c"], ["y"], then_branch=branch("Exp", "x"), else_branch=branch("Log", "x")),
    ]
    limit = numpy_helper.from_array(np.int64(32), "limit")
    for columns, taken in ((8, "Exp"), (9, "Log")):
        graph = read_graph(model(nodes, {"x": [4, columns]}, ["y"], [limit]))
        assert [node.op_type for node in graph.nodes] == [taken] and not graph.warnings


def loop(trips: str, shape=(2, 8)):
    inner = body(
        [helper.make_node("MatMul", ["h", "w"], ["h2"]), helper.make_node("Identity", ["go"], ["go2"]),
         helper.make_node("Relu", ["h2"], ["out"])],
        ["go2", "h2", "out"],
        [value("i", [], INT64), value("go", [], BOOL), value("h", shape)],
    )  # fmt: skip
    return helper.make_node("Loop", [trips, "", "x"], ["last", "all"], body=inner)


def test_loop_with_known_trip_count():
    trips = numpy_helper.from_array(np.int64(5), "trips")
    source = model([loop("trips")], {"x": [2, 8]}, ["last", "all"], [weight("w", 8, 8), trips])
    graph = read_graph(source)
    product = graph.nodes[0]
    assert product.repeats == 5 and product.macs == 5 * 128 and product.gemm == (2, 8, 8, 5)
    assert product.parameters == 64 and product.weight_bytes == 5 * 256
    assert [tensor.shape for tensor in graph.outputs] == [(2, 8), (5, 2, 8)] and not graph.warnings


def test_loop_with_unknown_trip_count_runs_once_and_says_so():
    inputs = [value("x", [2, 8]), value("trips", [], INT64)]
    graph = read_graph(model([loop("trips")], inputs, ["last"], [weight("w", 8, 8)]))
    assert graph.macs == 128 and any("not known" in warning for warning in graph.warnings)


def test_scan_runs_once_per_slice():
    inner = body(
        [helper.make_node("Add", ["state", "slice"], ["state2"]), helper.make_node("Relu", ["state2"], ["out"])],
        ["state2", "out"],
        [value("state", [8]), value("slice", [8])],
    )
    node = helper.make_node("Scan", ["s0", "x"], ["s1", "y"], body=inner, num_scan_inputs=1)
    graph = read_graph(model([node], {"s0": [8], "x": [6, 8]}, ["y"]))
    assert graph.outputs[0].shape == (6, 8)
    assert [(n.op_type, n.repeats) for n in graph.nodes] == [("Add", 6), ("Relu", 6), ("Scan", 1)]
    assert graph.nodes[0].flops == 48


def test_nested_loops_multiply():
    inner = body([helper.make_node("Relu", ["h"], ["h2"]), helper.make_node("Identity", ["g"], ["g2"])], ["g2", "h2"],
                 [value("j", [], INT64), value("g", [], BOOL), value("h", [4])])  # fmt: skip
    outer = body(
        [helper.make_node("Loop", ["three", "", "k"], ["k2"], body=inner), helper.make_node("Identity", ["f"], ["f2"])],
        ["f2", "k2"],
        [value("i", [], INT64), value("f", [], BOOL), value("k", [4])],
    )
    node = helper.make_node("Loop", ["two", "", "x"], ["y"], body=outer)
    trips = [numpy_helper.from_array(np.int64(n), name) for n, name in ((2, "two"), (3, "three"))]
    graph = read_graph(model([node], {"x": [4]}, ["y"], trips))
    assert graph.nodes[0].op_type == "Relu" and graph.nodes[0].repeats == 6


def test_scan_of_opset_8_runs_once_per_slice_of_every_batch_item():
    inner = body(
        [helper.make_node("Add", ["state", "slice"], ["state2"]), helper.make_node("Relu", ["state2"], ["out"])],
        ["state2", "out"],
        [value("state", [8]), value("slice", [8])],
    )
    node = helper.make_node("Scan", ["", "s0", "x"], ["s1", "y"], body=inner, num_scan_inputs=1)
    graph = read_graph(model([node], {"s0": [3, 8], "x": [3, 6, 8]}, ["s1", "y"], opset=8))
    assert [tensor.shape for tensor in graph.outputs] == [(3, 8), (3, 6, 8)]
    assert [(n.op_type, n.repeats) for n in graph.nodes] == [("Add", 18), ("Relu", 18), ("Scan", 1)]
