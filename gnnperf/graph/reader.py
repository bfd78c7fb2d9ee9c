"""Read the structure of an ONNX model, never its weights."""

from __future__ import annotations

import mmap
import os
import re
import stat
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError, EncodeError

from gnnperf.errors import ModelFileError
from gnnperf.graph.dims import MAX_RANK
from gnnperf.graph.functions import all_nodes, inline_functions
from gnnperf.graph.wire import strip_model

_EINSUM_TERM = r"[A-Za-z]*(\.\.\.[A-Za-z]*)?"
_EINSUM_EQUATION = re.compile(rf"{_EINSUM_TERM}(,{_EINSUM_TERM})*(->{_EINSUM_TERM})?".encode())
MAX_OPERATORS = 1_000_000
_COMPILED = frozenset({"EPContext", "Snpe"})
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
    if isinstance(source, bytearray | memoryview):
        source = bytes(source)
    if not isinstance(source, bytes | str | os.PathLike):
        raise ModelFileError(f"a path, bytes or an onnx.ModelProto is expected, not {type(source).__name__}")
    label = _label(source)
    try:
        model = onnx.ModelProto.FromString(read_structure(source))
    except (DecodeError, MemoryError) as error:
        raise _damaged(label, error) from None
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise ModelFileError(f"{label} holds no ONNX graph: is it an ONNX file?")
    model.ir_version = max(model.ir_version, _MIN_IR_VERSION)
    _normalise_opset(model)
    if model.functions:
        model = inline_functions(model, label)
    _check_nodes(model.graph, label)
    _normalise_initializers(model.graph)
    return model


def read_structure(source: str | Path | bytes) -> bytes:
    """The serialised model without the payload of large tensors: all that :func:`read_model` looks at.

    Raises:
        ModelFileError: there is no such file, or it is no ONNX file.
    """
    try:
        return strip_model(source) if isinstance(source, bytes) else _strip_file(source)
    except (DecodeError, MemoryError) as error:
        damage = _damaged(_label(source), error)
    raise damage  # not above, as its context would then keep the file mapped


def _label(source: str | Path | bytes) -> str:
    return "the model" if isinstance(source, bytes) else f"'{source}'"


def _damaged(label: str, error: Exception) -> ModelFileError:
    reason = f" ({error})" if str(error) else ""
    return ModelFileError(f"{label} is not an ONNX file, or is damaged{reason}: export it again")


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
        with path.open("rb") as file:
            # Not closed here: an error's traceback holds pieces of it. It goes with its last user.
            return strip_model(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    except FileNotFoundError:
        raise ModelFileError(f"there is no file '{path}'") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelFileError(f"'{path}' cannot be read: {reason}") from None


def _normalise_opset(model: onnx.ModelProto) -> None:
    """Take an opset that this onnx package does not know for the nearest that it does."""
    newest = onnx.defs.onnx_opset_version()
    standard = [opset for opset in model.opset_import if opset.domain in ("", "ai.onnx")]
    for opset in standard or [model.opset_import.add(domain="", version=newest)]:
        opset.version = min(max(opset.version, 1), newest)


def _check_nodes(graph: onnx.GraphProto, label: str) -> None:
    """Refuse what would stop the onnx package or our output rather than be an error there."""
    texts = [graph.name, *(value.name for value in graph.input), *(value.name for value in graph.output)]
    long_shapes = {value.name for value in graph.input if _elements_of_vector(value) > MAX_RANK}
    for count, node in enumerate(all_nodes(graph.node), 1):
        if count > MAX_OPERATORS:
            raise ModelFileError(f"{label} has more than {MAX_OPERATORS:,} operators, which is more than is read")
        texts += (node.name, node.op_type, node.domain, *node.input, *node.output)
        if node.op_type in _COMPILED and node.domain == "com.microsoft":
            raise ModelFileError(f"{label} holds a network compiled for one accelerator ({node.op_type}), which cannot "
                                 "be looked into: give the file that it was compiled from")  # fmt: skip
        if node.op_type == "Expand":  # before opset 13, shape inference takes a dimension for every element
            if long_shapes.intersection(node.input[1:]):
                raise ModelFileError(f"{label}: Expand '{node.name}' has no valid target shape")
        elif node.op_type == "Einsum":  # shape inference never ends on a dot that belongs to no ellipsis
            for attribute in node.attribute:
                if attribute.name == "equation" and not _EINSUM_EQUATION.fullmatch(attribute.s.replace(b" ", b"")):
                    raise ModelFileError(f"{label}: Einsum '{node.name}' has no valid equation")
    if not all(isinstance(text, str) for text in texts):  # protobuf gives bytes for what is no UTF-8
        raise ModelFileError(f"{label} holds names that are not UTF-8: it is damaged, export it again")


def _elements_of_vector(value: onnx.ValueInfoProto) -> int:
    dims = value.type.tensor_type.shape.dim
    return dims[0].dim_value if len(dims) == 1 else 0


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
