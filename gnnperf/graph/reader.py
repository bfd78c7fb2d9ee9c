"""Read the structure of an ONNX model, never its weights."""

from __future__ import annotations

import mmap
import stat
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError, EncodeError

from gnnperf.errors import ModelFileError
from gnnperf.graph.wire import strip_model

_MIN_IR_VERSION = 8  # below 4, initializers count as graph inputs, and shape inference ignores them


def read_model(source: str | Path | bytes | onnx.ModelProto) -> onnx.ModelProto:
    """Return the model's structure as a new ModelProto; ``source`` is left as it is.

    Payloads of large tensors are dropped, external data is never opened, local functions are inlined, and weights
    that are listed as graph inputs too are taken off the inputs.

    Args:
        source: path of an ONNX file, its content, or a loaded model.

    Raises:
        ModelFileError: there is no such file, or it holds no ONNX graph.
    """
    if isinstance(source, onnx.ModelProto):
        try:
            source = source.SerializeToString()
        except (EncodeError, ValueError):
            raise ModelFileError("the model is too large to be serialised: save it and give its path") from None
    label = "the model" if isinstance(source, bytes) else f"'{source}'"
    try:
        model = onnx.ModelProto.FromString(strip_model(source) if isinstance(source, bytes) else _strip_file(source))
    except (DecodeError, MemoryError):
        raise ModelFileError(f"{label} is not an ONNX file, or is damaged: export it again") from None
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise ModelFileError(f"{label} holds no ONNX graph: is it an ONNX file?")
    model.ir_version = max(model.ir_version, _MIN_IR_VERSION)
    if not any(opset.domain in ("", "ai.onnx") for opset in model.opset_import):
        model.opset_import.add(domain="", version=onnx.defs.onnx_opset_version())
    if model.functions:
        model = _inline_functions(model, label)
    _normalise_initializers(model.graph)
    return model


def _strip_file(path: str | Path) -> bytes:
    path = Path(path)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise ModelFileError(f"'{path}' is a folder: give an ONNX file")
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError(f"'{path}' is not a regular file: give an ONNX file")
        if not status.st_size:
            raise ModelFileError(f"'{path}' is empty")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            with memoryview(content) as view:
                return strip_model(view)
    except FileNotFoundError:
        raise ModelFileError(f"there is no file '{path}'") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelFileError(f"'{path}' cannot be read: {reason}") from None


def _inline_functions(model: onnx.ModelProto, label: str) -> onnx.ModelProto:
    from onnx.inliner import inline_local_functions

    try:
        return inline_local_functions(model)
    except Exception as error:
        raise ModelFileError(f"the functions inside {label} cannot be inlined: {error}") from None


def _normalise_initializers(graph: onnx.GraphProto) -> None:
    """Make every weight a dense initializer that points to no other file and is no graph input."""
    for sparse in graph.sparse_initializer:
        graph.initializer.add(name=sparse.values.name, data_type=sparse.values.data_type, dims=sparse.dims)
    del graph.sparse_initializer[:]
    names = set()
    for tensor in graph.initializer:
        names.add(tensor.name)
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            tensor.ClearField("data_location")
            tensor.ClearField("external_data")
    if any(value.name in names for value in graph.input):
        inputs = [value for value in graph.input if value.name not in names]
        del graph.input[:]
        graph.input.extend(inputs)
