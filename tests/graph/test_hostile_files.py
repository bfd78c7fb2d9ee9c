"""Files that break the specification, by accident or on purpose, end in one error: no crash, no hang, no odd cost."""

import random
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import INT64, ints, model, single, value, weight

from gnnperf import zoo
from gnnperf.errors import ModelFileError
from gnnperf.graph import read_graph, to_arrays


def loop(trips: int, body_nodes: list[onnx.NodeProto]) -> onnx.NodeProto:
    inputs = [value("i", [], INT64), value("go", [], TensorProto.BOOL), value("s", None)]
    body = helper.make_graph(body_nodes, "body", inputs, [value("go_on", [], TensorProto.BOOL), value("t", None)])
    return helper.make_node("Loop", [trips, "true", "x"], ["y"], body=body)


@pytest.mark.parametrize("dims", [(-4, 4), (-4, -4), (2**62, 2**62), (2**62,) * 40])
def test_weights_of_absurd_sizes_are_refused(dims):
    source = single("MatMul", {"x": [1, 4]}, [weight("w", 4, 4)])
    source.graph.initializer[0].ClearField("raw_data")
    source.graph.initializer[0].dims[:] = dims
    with pytest.raises(ModelFileError, match="'w'"):
        read_graph(source)


@pytest.mark.parametrize("trips", [2**31 - 1, 2**63 - 1])
def test_a_loop_until_its_condition_fails_is_not_multiplied(trips):
    body = [helper.make_node("Relu", ["s"], ["t"]), helper.make_node("Identity", ["go"], ["go_on"])]
    constants = [numpy_helper.from_array(np.array(trips), "trips"), numpy_helper.from_array(np.array(True), "true")]
    graph = read_graph(model([loop("trips", body)], {"x": [1, 4]}, ["y"], constants))
    assert [node.repeats for node in graph.nodes if node.op_type == "Relu"] == [1]
    assert any("is not known: once is counted" in warning for warning in graph.warnings)


def test_costs_beyond_any_network_are_refused():
    pool = single("MaxPool", {"x": [1, 3, 8, 8]}, kernel_shape=[2**62, 2**62], pads=[2**61] * 4)
    with pytest.raises(ModelFileError, match=r"MaxPool.*2\*\*100"):
        read_graph(pool)


@pytest.mark.parametrize(
    ("op_type", "initializers", "attributes"),
    [
        ("Conv", [weight("w", 4, 4, 3, 3)], {"group": -1}),
        ("Conv", [weight("w", 4, 4, 3, 3)], {"strides": [1, -(2**63)]}),
        ("Conv", [weight("w", 4, 4, 3, 3)], {"strides": ["a", "b"]}),
        ("LSTM", [weight("W", 1, 8, 8), weight("R", 1, 8, 2)], {"hidden_size": -2}),
        ("com.microsoft.MatMulNBits", [weight("w", 4, 4)], {"K": -4, "N": -3}),
        ("ai.onnx.ml.LinearRegressor", [], {"targets": -1}),
        ("Einsum", [weight("w", 8, 8)], {"equation": "ij,jk,kl->il"}),
    ],
)
def test_broken_attributes_leave_an_operator_unresolved_but_never_negative(op_type, initializers, attributes):
    domain, _, op_type = op_type.rpartition(".")
    source = single(op_type, {"x": [4, 4, 8, 8] if op_type == "Conv" else [5, 1, 8]}, initializers, **attributes)
    source.graph.node[0].domain = domain
    graph = read_graph(source)
    assert not graph.nodes[0].resolved
    assert (to_arrays(graph).node >= 0).all()


@pytest.mark.parametrize("equation", ["...i...,j->ij", "i.j,jk->ik", "......,j->ij", b"\xff\xfe"])
def test_an_einsum_equation_that_shape_inference_never_ends_on_is_refused(equation):
    with pytest.raises(ModelFileError, match="Einsum"):
        read_graph(single("Einsum", {"a": [2, 3], "b": [3, 4]}, equation=equation))


def test_an_expansion_to_billions_of_dimensions_is_refused():
    expand = helper.make_node("Expand", ["x", "shape"], ["y"])
    source = model([expand], [value("x", [1, 3]), value("shape", [2**31], INT64)], ["y"], opset=9)
    with pytest.raises(ModelFileError, match="Expand"):
        read_graph(source)


@pytest.mark.parametrize("inside_a_branch", [False, True])
def test_a_slice_of_what_a_too_large_window_leaves_does_not_abort(inside_a_branch):
    """ONNX's inference gives the convolution negative sizes, and ends the whole process on slicing those."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["h"]), helper.make_node("Slice", ["h", "i", "i", "i"], ["y"])]
    inputs, constants = [value("x", [1, 3, 2, 2])], [weight("w", 4, 3, 5, 5), ints("i", 1)]
    if inside_a_branch:
        branch = helper.make_graph(
            [helper.make_node("Slice", ["h", "i", "i", "i"], ["q"])], "b", [], [value("q", None)]
        )
        nodes[1] = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
        inputs.append(value("c", [], TensorProto.BOOL))
    assert not any(node.resolved for node in read_graph(model(nodes, inputs, ["y"], constants)).nodes)


def test_a_scan_over_billions_of_inputs_takes_no_memory_for_them():
    body = helper.make_graph([helper.make_node("Relu", ["s"], ["t"])], "body", [value("s", None)], [value("t", None)])
    scan = single("Scan", {"x": [5, 4]}, num_scan_inputs=2**62, body=body)
    assert read_graph(scan).nodes[-1].op_type == "Scan"


@pytest.mark.parametrize("op_type", ["Where", "Sum"])
def test_small_constants_are_not_broadcast_into_gigabytes(op_type):
    shapes = [ints("s0", 1024, 1, 1), ints("s1", 1024, 1), ints("s2", 1024)]
    kinds = [{"value": helper.make_tensor("", TensorProto.BOOL, [1], [1])} if op_type == "Where" else {}, {}, {}]
    nodes = [helper.make_node("ConstantOfShape", [f"s{i}"], [f"c{i}"], **kind) for i, kind in enumerate(kinds)]
    nodes += [helper.make_node(op_type, ["c0", "c1", "c2"], ["c"]), helper.make_node("Add", ["x", "c"], ["y"])]
    assert read_graph(model(nodes, {"x": [1]}, ["y"], shapes)).nodes[0].output_shape == (1024, 1024, 1024)


def test_a_cycle_through_a_branch_is_found():
    branch = helper.make_graph([helper.make_node("Relu", ["b"], ["q"])], "branch", [], [value("q", None)])
    choice = helper.make_node("If", ["c"], ["a"], then_branch=branch, else_branch=branch)
    source = model([choice, helper.make_node("Relu", ["a"], ["b"])], [value("c", [], TensorProto.BOOL)], ["b"])
    with pytest.raises(ModelFileError, match="cycle"):
        read_graph(source)


def test_names_that_are_not_utf8_are_refused():
    content = single("Relu", {"input": [1, 3]}).SerializeToString().replace(b"input", b"\xff\xfe\x80\x81\xc3")
    with pytest.raises(ModelFileError, match="UTF-8"):
        read_graph(content)


@pytest.mark.parametrize("location", ["../../etc/passwd", "/etc/passwd"])
def test_external_data_outside_the_folder_is_never_opened(location, tmp_path, monkeypatch):
    source = single("Conv", {"x": [1, 3, 8, 8]}, [weight("w", 4, 3, 3, 3)])
    tensor = source.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    path = tmp_path / "net.onnx"
    path.write_bytes(source.SerializeToString())
    opened = []
    monkeypatch.setattr(onnx.external_data_helper, "load_external_data_for_tensor", lambda *_: opened.append(location))
    sys.addaudithook(lambda event, args: event == "open" and opened.append(str(args[0])))
    assert read_graph(path).macs == 6 * 6 * 4 * 27
    assert str(path) in opened and not any(name.endswith(("passwd", location)) for name in opened)


@pytest.mark.parametrize("opset", [1, 5, 0, 99, 2**40])
def test_opsets_that_infer_no_shapes_or_are_not_known(opset):
    normalise = helper.make_node(
        "BatchNormalization", ["h", *"abcd"], ["n"], is_test=1, consumed_inputs=[0, 0, 0, 1, 1]
    )
    nodes = [helper.make_node("Conv", ["x", "w"], ["h"]), helper.make_node("Relu", ["n"], ["y"])]
    if opset == 1:
        nodes[1:1] = [normalise]
        nodes[-1] = helper.make_node("Reshape", ["n"], ["y"], shape=[0, -1])
    else:
        nodes[1] = helper.make_node("Relu", ["h"], ["y"])
    weights = [weight("w", 4, 3, 3, 3), *(weight(name, 4) for name in "abcd")]
    graph = read_graph(model(nodes, {"x": [2, 3, 8, 8]}, ["y"], weights, opset))
    assert all(node.resolved for node in graph.nodes)
    assert graph.outputs[0].shape == ((2, 144) if opset == 1 else (2, 4, 6, 6))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 1.5}, "batch size must be a whole number"),
        ({"batch": "4"}, "batch size must be a whole number"),
        ({"dims": {"n": "4"}}, "dimension 'n' must be a whole number"),
        ({"input_shapes": {"x": "13"}}, "'x' must be a whole number"),
    ],
)
def test_sizes_that_are_no_whole_numbers(options, message):
    with pytest.raises(ModelFileError, match=message):
        read_graph(single("Relu", {"x": ["n", 3]}), **options)


def test_sources_that_are_no_model():
    with pytest.raises(ModelFileError, match="not int"):
        read_graph(5)
    content = single("Relu", {"x": [1, 3]}).SerializeToString()
    assert read_graph(bytearray(content)).nodes == read_graph(content).nodes


@pytest.mark.parametrize("spec", ["lenet5", "resnet18"])
def test_damaged_bytes_never_do_more_than_be_refused(spec):
    original, generator = zoo.build(spec, 1).SerializeToString(), random.Random(0)
    refused = 0
    for _ in range(150):
        content = bytearray(original)
        for _ in range(generator.choice([1, 3, 20])):
            content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        if generator.random() < 0.3:
            del content[generator.randrange(len(content)) :]
        try:
            arrays = to_arrays(read_graph(bytes(content)))
        except ModelFileError:
            refused += 1
            continue
        assert (arrays.node >= 0).all() and np.isfinite(arrays.node).all()
        assert (arrays.edge_index[0] < arrays.edge_index[1]).all()
    assert 0 < refused < 150


def calls(levels: int, per_level: int, recursive: bool = False) -> onnx.ModelProto:
    """Functions that call the next one several times each; the last has operators, or calls the first again."""
    source = model([helper.make_node("f0", ["x"], ["y"], domain="local")], {"x": [2, 4]}, ["y"])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    source.opset_import.append(opsets[1])
    for level in range(levels):
        last = level + 1 == levels and not recursive
        called, domain = ("Relu", "") if last else (f"f{(level + 1) % levels}", "local")
        names = ["a", *(f"b{i}" for i in range(per_level))]
        body = [helper.make_node(called, [names[i]], [names[i + 1]], domain=domain) for i in range(per_level)]
        source.functions.append(helper.make_function("local", f"f{level}", ["a"], [names[-1]], body, opsets))
    return source


def test_functions_are_inlined_up_to_a_sane_number_of_operators():
    assert len(read_graph(calls(3, 5)).nodes) == 125
    with pytest.raises(ModelFileError, match="expand to more than 200,000 operators"):
        read_graph(calls(10, 10))


@pytest.mark.parametrize(("levels", "message"), [(1, "call themselves"), (3, "call themselves")])
def test_functions_that_call_themselves_are_refused(levels, message):
    with pytest.raises(ModelFileError, match=message):
        read_graph(calls(levels, 2, recursive=True))


def test_calls_nested_very_deeply_are_refused():
    with pytest.raises(ModelFileError, match="200 deep"):
        read_graph(calls(5000, 1))


def field(number: int, payload: bytes) -> bytes:
    """A protobuf field of bytes."""
    length, size = len(payload), bytearray()
    while length > 127:
        size.append(length & 127 | 128)
        length >>= 7
    return bytes([number << 3 | 2, *size, length]) + payload


def test_branches_nested_ten_thousand_deep_are_refused():
    graph = b""
    for _ in range(10_000):
        body = field(1, b"then_branch") + field(6, graph)
        graph = field(1, field(2, b"y") + field(4, b"If") + field(5, body))
        if len(graph) > 300_000:
            break
    with pytest.raises(ModelFileError, match="damaged"):
        read_graph(field(7, graph + field(12, field(1, b"y"))))


def test_damage_deep_inside_a_file_is_one_error(tmp_path):
    """An error's traceback holds on to pieces of the mapped file."""
    whole = field(1, field(2, b"y") + field(4, b"Relu")) + field(5, field(9, b"z" * 100_000))
    path = tmp_path / "damaged.onnx"
    path.write_bytes(field(7, whole + field(5, b"\x0f" * 100_000)))
    with pytest.raises(ModelFileError, match=r"damaged\.onnx' is not an ONNX file, or is damaged"):
        read_graph(path)


@pytest.mark.parametrize("place", ["weight", "input", "constant", "reshape", "kernel"])
def test_thousands_of_dimensions_are_not_multiplied(place):
    """Their product has millions of digits."""
    many = [2**62] * 50_000
    source = single("MatMul", {"x": [1, 4]}, [weight("w", 4, 4)])
    if place == "weight":
        source.graph.initializer[0].ClearField("raw_data")
        source.graph.initializer[0].dims[:] = many
    elif place == "input":
        source.graph.input[0].type.tensor_type.shape.dim.extend(
            [onnx.TensorShapeProto.Dimension(dim_value=2**30)] * 50_000
        )
    elif place == "constant":
        constant = helper.make_node("Constant", [], ["w2"], value=TensorProto(data_type=1, dims=many))
        source = model([constant, helper.make_node("Add", ["x", "w2"], ["y"])], {"x": [1]}, ["y"])
    elif place == "reshape":
        source = single("Reshape", {"x": [1, 4]}, shape=many, opset=1)
    else:
        source = single("MaxPool", {"x": [1, 3, 8, 8]}, kernel_shape=many)
    try:
        assert not read_graph(source).nodes[0].resolved
    except ModelFileError as error:
        assert "64 dimensions" in str(error)


def test_many_total_lengths_are_linear():
    source = single("Relu", {"x": ["N", 4]})
    for i in range(3000):
        source.graph.input.append(value(f"i{i}", [f"total_{i}"]))
    looked_up = []
    sys.setprofile(lambda frame, event, arg: looked_up.append(event))
    try:
        read_graph(source)
    finally:
        sys.setprofile(None)
    assert len(looked_up) < 3000 * 200


def test_long_values_are_kept_up_to_a_limit(monkeypatch):
    """A thousand operators on a thousand numbers each are cheap; a million of them would fill the memory."""
    from gnnperf.graph import trace

    nodes = [helper.make_node("Range", ["zero", "thousand", "one"], ["v0"])]
    nodes += [helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(20)]
    nodes.append(helper.make_node("Add", ["x", "v20"], ["y"]))
    scalars = [numpy_helper.from_array(np.int64(v), n) for n, v in (("zero", 0), ("thousand", 1000), ("one", 1))]
    source = model(nodes, [value("x", [1], INT64)], ["y"], scalars)
    expected = read_graph(source).outputs
    monkeypatch.setattr(trace, "_KEPT_VALUE_BYTES", 5 * 8000)
    assert read_graph(source).outputs == expected


@pytest.mark.parametrize(
    ("limit", "message"), [("_MAX_FIELDS", "more fields"), ("_MAX_STRUCTURE_BYTES", "beside its weights")]
)
def test_absurd_amounts_of_structure_are_refused(limit, message, monkeypatch):
    from gnnperf.graph import wire

    content = zoo.build("resnet18", 1).SerializeToString()
    monkeypatch.setattr(wire, limit, 60)
    with pytest.raises(ModelFileError, match=message):
        read_graph(content)


def test_more_operators_than_are_read_are_refused(monkeypatch):
    from gnnperf.graph import reader

    nodes = [helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"]) for i in range(6)]
    source = model(nodes, {"t0": [2]}, ["t6"])
    monkeypatch.setattr(reader, "MAX_OPERATORS", 6)
    assert len(read_graph(source).nodes) == 6
    monkeypatch.setattr(reader, "MAX_OPERATORS", 5)
    with pytest.raises(ModelFileError, match="more than 5 operators"):
        read_graph(source)


# Found by scripts/fuzz_reader.py: ONNX's inference ends the process on these.
def untyped(op_type: str, domain: str = "", **attributes) -> onnx.ModelProto:
    source = model([helper.make_node(op_type, ["nowhere"], ["y"], domain=domain, **attributes)], {}, ["y"], opset=20)
    source.opset_import.append(helper.make_opsetid("ai.onnx.ml", 5 if op_type == "TreeEnsemble" else 4))
    return source


@pytest.mark.parametrize(
    "source",
    [
        untyped("EyeLike"),
        untyped("RegexFullMatch", pattern="a"),
        untyped("DictVectorizer", "ai.onnx.ml", string_vocabulary=["a"]),
        untyped("LabelEncoder", "ai.onnx.ml", keys_strings=["a"], values_int64s=[1]),
        untyped("TreeEnsemble", "ai.onnx.ml", n_targets=1, nodes_splits=weight("s", 1)),
        single("GatherND", {"x": [3, 3], "i": [-5]}, opset=11),
        single("GatherND", {"x": [3, 3], "i": [3]}, batch_dims=7),
    ],
    ids=lambda source: source.graph.node[0].op_type,
)
def test_operators_on_which_the_onnx_package_crashes(source):
    for tensor in source.graph.input:
        tensor.type.tensor_type.elem_type = INT64 if tensor.name == "i" else TensorProto.FLOAT
    try:
        read_graph(source)
    except ModelFileError:
        pass


def test_an_error_names_what_a_file_calls_in_two_lines_in_one():
    source = single("Relu", {"two\nlines\x1b[31m": [2**40, 2**40]})
    with pytest.raises(ModelFileError) as error:
        read_graph(source)
    assert "two lines" in str(error.value) and str(error.value).isprintable()
    source = single("Relu", {"x" * 100_000: [2**40, 2**40]})
    with pytest.raises(ModelFileError) as error:
        read_graph(source)
    assert len(str(error.value)) < 1100


def test_an_operator_that_is_not_as_specified_is_named():
    with pytest.raises(ModelFileError, match="'choice'"):
        read_graph(model([helper.make_node("If", ["c"], ["y"], name="choice")], {"c": []}, ["y"]))


def test_names_that_clash_are_kept_apart():
    """Two operators of one name, a body that reuses a name of the graph around it, an initializer like an output."""
    branch = helper.make_graph([helper.make_node("Exp", ["x"], ["h"], name="n")], "b", [], [value("h", None)])
    nodes = [
        helper.make_node("Relu", ["x"], ["h"], name="n"),
        helper.make_node("If", ["c"], ["g"], name="n", then_branch=branch, else_branch=branch),
        helper.make_node("Add", ["h", "g"], ["y"], name="n"),
    ]
    graph = read_graph(model(nodes, [value("x", [2, 3]), value("c", [], TensorProto.BOOL)], ["y"]))
    assert [node.op_type for node in graph.nodes] == ["Relu", "Exp", "If", "Add"]
    assert [(edge.source, edge.target) for edge in graph.edges] == [(1, 2), (0, 3), (2, 3)]


def test_an_operator_without_outputs_computes_nothing():
    nodes = [
        onnx.NodeProto(op_type="Constant"),
        helper.make_node("Relu", ["x"], []),
        helper.make_node("Exp", ["x"], ["y"]),
    ]
    assert [node.op_type for node in read_graph(model(nodes, {"x": [2]}, ["y"])).nodes] == ["Exp"]


def test_weights_without_elements():
    node = read_graph(single("Concat", {"x": [2, 3]}, [weight("w", 2, 0)], axis=1)).nodes[0]
    assert node.output_shape == (2, 3) and node.weight_bytes == 0 and node.resolved


def test_inputs_of_different_batches_share_one():
    graph = read_graph(single("MatMul", {"x": ["N", 8], "y": ["batch", 8, 4]}), batch=3)
    assert [tensor.shape for tensor in graph.inputs] == [(3, 8), (3, 8, 4)]


def test_reading_is_linear():
    """Python calls, which no load of the machine changes, grow with the operators."""

    def calls_for(count: int) -> int:
        nodes = [helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"]) for i in range(count)]
        source, events = model(nodes, {"t0": ["N", 4]}, [f"t{count}"]), []
        sys.setprofile(lambda frame, event, arg: events.append(None))
        try:
            to_arrays(read_graph(source))
        finally:
            sys.setprofile(None)
        return len(events)

    assert calls_for(2000) < 2.2 * calls_for(1000)
