"""Shapes that onnxruntime produces, tensor by tensor, for the tests of the graph package."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from gnnperf.graph.dims import InputDims


def executed_shapes(model: onnx.ModelProto, dims: InputDims) -> dict[str, tuple[int, ...]]:
    """Run a model on ones, every tensor of its main graph shown as an output; the model is changed."""
    import onnxruntime

    shown = {tensor.name for tensor in model.graph.output}
    for node in model.graph.node:
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name and name not in shown)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    types = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
    feeds = {
        item.name: np.ones(dims.shapes[item.name], helper.tensor_dtype_to_np_dtype(types[item.name]))
        for item in session.get_inputs()
    }
    results = session.run(None, feeds)
    names = [item.name for item in session.get_outputs()]
    return {name: result.shape for name, result in zip(names, results, strict=True) if isinstance(result, np.ndarray)}
