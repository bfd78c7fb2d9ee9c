"""Reading structure only: weights in any form are never needed, damaged files give one clear error."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import INT64, ints, model, single, value, weight

from gnnperf.errors import ModelFileError
from gnnperf.graph import OpClass, read_graph
from gnnperf.graph.reader import read_model


@pytest.fixture
def convolution() -> onnx.ModelProto:
    return single("Conv", {"x": ["N", 3, 32, 32]}, [weight("w", 64, 3, 7, 7)], strides=[2, 2], pads=[3, 3, 3, 3])


def test_weights_are_dropped_and_small_constants_kept():
    reshape = helper.make_node("Reshape", ["h", "shape"], ["y"])
    product = helper.make_node("MatMul", ["x", "w"], ["h"])
    source = model([product, reshape], {"x": [1, 256]}, ["y"], [weight("w", 256, 256), ints("shape", -1, 16)])
    stripped = read_model(source)
    kept = {tensor.name: tensor for tensor in stripped.graph.initializer}
    assert list(kept["w"].dims) == [256, 256] and not kept["w"].raw_data
    assert numpy_helper.to_array(kept["shape"]).tolist() == [-1, 16]
    assert stripped.ByteSize() < 1000 < source.ByteSize()
    assert source.graph.initializer[0].raw_data  # the caller's model is left alone


def test_constant_nodes_and_bodies_lose_their_payload_too():
    table = helper.make_node("Constant", [], ["w"], value=weight("", 512, 512))
    body = helper.make_graph([table, helper.make_node("MatMul", ["x", "w"], ["b"])], "body", [], [value("b", None)])
    branch = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    source = model([branch], [value("x", [1, 512]), value("c", [], TensorProto.BOOL)], ["y"])
    assert source.ByteSize() > 2 * 512 * 512 * 4
    assert read_model(source).ByteSize() < 2000
    assert read_graph(source).macs == 512 * 512


def test_path_content_and_model_agree(convolution, tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(convolution, path)
    graphs = [read_graph(source) for source in (path, str(path), path.read_bytes(), convolution)]
    assert {graph.macs for graph in graphs} == {16 * 16 * 64 * 3 * 49}
    assert [graph.name for graph in graphs] == ["net"] * 4


def test_external_data_is_never_opened(convolution, tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(convolution, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    graph = read_graph(path)
    assert graph.macs == 16 * 16 * 64 * 3 * 49 and graph.parameters == 64 * 3 * 49


def test_weights_as_graph_inputs(convolution):
    """torch.onnx.export(export_params=False)."""
    del convolution.graph.initializer[:]
    convolution.graph.input.append(value("w", [64, 3, 7, 7]))
    graph = read_graph(convolution)
    assert [tensor.name for tensor in graph.inputs] == ["x"]
    assert graph.nodes[0].weight_bytes == 64 * 3 * 49 * 4


def test_two_activations_are_not_mistaken_for_weights():
    graph = read_graph(single("MatMul", {"a": [8, 16], "b": [16, 4]}))
    assert [tensor.name for tensor in graph.inputs] == ["a", "b"]
    assert graph.nodes[0].op_class == OpClass.MATMUL


def test_missing_initializer(convolution):
    del convolution.graph.initializer[:]
    convolution.graph.node[0].attribute.append(helper.make_attribute("kernel_shape", [7, 7]))
    graph = read_graph(convolution)
    assert not graph.nodes[0].resolved
    assert any("unknown shape" in warning for warning in graph.warnings)


def test_missing_weights_follow_from_the_shapes_around_them():
    """torch.onnx.export(dynamo=True), saved without initializers: only activations have their shapes in the file."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["h"], kernel_shape=[3, 3]),
        helper.make_node("Flatten", ["h"], ["f"]),
        helper.make_node("Gemm", ["f", "v", "c"], ["g"], transB=1),
        helper.make_node("MatMul", ["g", "u"], ["y"]),
    ]
    source = model(nodes, {"x": ["batch", 3, 6, 6]}, ["y"])
    source.graph.value_info.extend(
        [value("h", ["batch", 8, 4, 4]), value("g", ["batch", 10]), value("y", ["batch", 5])]
    )
    del source.graph.output[:]
    source.graph.output.append(value("y", ["batch", 5]))
    graph = read_graph(source, batch=2)
    assert [node.macs for node in graph.nodes] == [2 * 16 * 8 * 27, 0, 2 * 128 * 10, 2 * 10 * 5]
    assert graph.parameters == 8 * 27 + 8 + 1280 + 10 + 50 and all(node.resolved for node in graph.nodes)


def test_old_files_list_initializers_as_inputs(convolution):
    convolution.ir_version = 3
    convolution.graph.input.append(value("w", [64, 3, 7, 7]))
    graph = read_graph(convolution)
    assert [tensor.name for tensor in graph.inputs] == ["x"] and graph.nodes[0].output_shape == (1, 64, 16, 16)


def test_local_functions_are_inlined():
    body = [helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Sigmoid", ["b"], ["c"])]
    opsets = [helper.make_opsetid("", 17)]
    function = helper.make_function("local", "Act", ["a"], ["c"], body, opsets)
    source = model([helper.make_node("Act", ["x"], ["y"], domain="local")], {"x": [2, 4]}, ["y"])
    source.functions.append(function)
    source.opset_import.append(helper.make_opsetid("local", 1))
    assert [node.op_type for node in read_graph(source).nodes] == ["Relu", "Sigmoid"]


def test_stale_shapes_in_the_file_are_ignored(convolution):
    convolution.graph.output[0].CopyFrom(value("y0", [1, 64, 99, 99]))
    assert read_graph(convolution).outputs[0].shape == (1, 64, 16, 16)


def test_unsorted_nodes_are_sorted():
    nodes = [helper.make_node("Sigmoid", ["h"], ["y"]), helper.make_node("Relu", ["x"], ["h"])]
    graph = read_graph(model(nodes, {"x": [1, 4]}, ["y"]))
    assert [node.op_type for node in graph.nodes] == ["Relu", "Sigmoid"]
    assert (graph.edges[0].source, graph.edges[0].target) == (0, 1)


def test_cycles_are_refused():
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    with pytest.raises(ModelFileError, match="cycle"):
        read_graph(model(nodes, {"x": [1, 4]}, ["b"]))


@pytest.mark.parametrize("content", [b"", b"hello world", b"\0" * 100, b"\xff" * 100, b"PK\x03\x04 not a model"])
def test_garbage_is_refused_in_one_line(content, tmp_path):
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    for source in (content, path):
        with pytest.raises(ModelFileError) as error:
            read_graph(source)
        assert "\n" not in str(error.value)


def test_truncated_files_are_refused(convolution):
    content = convolution.SerializeToString()
    for length in range(1, len(content) - 20, 211):
        with pytest.raises(ModelFileError):
            read_graph(content[:length])


def test_damaged_files_never_end_in_another_error(convolution):
    content = single("Conv", {"x": ["N", 3, 8, 8]}, [weight("w", 2, 3, 3, 3)]).SerializeToString()
    generator = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        damaged = bytearray(content)
        for position in generator.integers(len(content), size=3):
            damaged[position] = generator.integers(256)
        try:
            read_graph(bytes(damaged))
        except ModelFileError:
            refused += 1
    assert refused > 0


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(ModelFileError, match="no file"):
        read_graph(tmp_path / "none.onnx")
    with pytest.raises(ModelFileError, match="folder"):
        read_graph(tmp_path)


def test_integer_weight_tables_without_payload_do_not_become_shapes():
    source = single("Gather", {}, inputs=["table", "i"], initializers=[weight("table", 300, 8, dtype=np.int64)])
    source.graph.input.append(value("i", [1, 5], INT64))
    assert read_graph(source).outputs[0].shape == (1, 5, 8)
