"""A torch.nn.Module as an operator graph: exported to ONNX without its weights, then read as any file is.

The module is exported as PyTorch runs it: batch normalisation stays apart from convolutions. torch is imported when a
module is read, never before.
"""

from __future__ import annotations

import importlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import onnx

from gnnperf.errors import ModelFileError
from gnnperf.graph import OpGraph, read_graph

if TYPE_CHECKING:
    import torch

_OPSET = 20  # the first with Gelu


def read_module(
    module: torch.nn.Module,
    example_inputs: Any,
    *,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, tuple[int, ...]] | None = None,
    name: str | None = None,
) -> OpGraph:
    """Read a module into an OpGraph.

    Args:
        module: in any mode; it is left as it is.
        example_inputs: what it is called with: a tensor, or a tuple of arguments.
        batch: batch size; the example's by default.
        dims: as for :func:`gnnperf.graph.read_graph`.
        input_shapes: as there; inputs are called as the arguments of ``forward``.
        name: of the graph; the class's by default.

    Raises:
        ModelFileError: there are no example inputs, or the module cannot be exported.
    """
    model = export_module(module, example_inputs)
    return read_graph(model, batch=batch, dims=dims, input_shapes=input_shapes, name=name or type(module).__name__)


def export_module(module: torch.nn.Module, example_inputs: Any) -> onnx.ModelProto:
    """Export a module for inference as ONNX without weights.

    Raises:
        ModelFileError: there are no example inputs, or the module cannot be exported.
    """
    if example_inputs is None:
        raise ModelFileError(
            f"{type(module).__name__} is a torch.nn.Module: give example_inputs, a tensor or a tuple of arguments"
        )
    arguments = example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)
    with _for_inference(module), _quiet():
        try:
            # A second at most, where it works.
            return _by_tracing(module, arguments)
        except Exception:  # of the many that the exporter and the module itself can raise
            try:
                return _by_capture(module, arguments)
            except ModuleNotFoundError as error:
                raise ModelFileError(
                    f"exporting {type(module).__name__} needs {error.name}: pip install 'gnnperf[train]'"
                ) from None
            except Exception as error:
                _check_that_it_runs(module, arguments)
                raise ModelFileError(
                    f"{type(module).__name__} cannot be exported by torch.onnx.export ({_first_line(_origin(error))})"
                ) from None


def _check_that_it_runs(module: torch.nn.Module, arguments: tuple) -> None:
    """Say what is wrong with a module or its inputs in its own words rather than the exporter's."""
    keywords = {}
    if arguments and isinstance(arguments[-1], dict):  # as the exporter has it
        *arguments, keywords = arguments
    try:
        module(*arguments, **keywords)
    except Exception as error:
        raise ModelFileError(
            f"{type(module).__name__} does not run on its example inputs: {type(error).__name__}: {_first_line(error)}"
        ) from None


def _by_tracing(module: torch.nn.Module, arguments: tuple) -> onnx.ModelProto:
    import torch

    file = io.BytesIO()
    torch.onnx.export(
        module, arguments, file, dynamo=False, opset_version=_OPSET, export_params=False, do_constant_folding=False,
        training=torch.onnx.TrainingMode.PRESERVE,  # EVAL would fold batch normalisation into convolutions
        keep_initializers_as_inputs=True,  # or weights of equal content would become one
    )  # fmt: skip
    exported = onnx.load_from_string(file.getvalue())
    # Without payload, weights are written as inputs. Which ones they are is known here.
    weights = {name for name, _ in (*module.named_parameters(), *module.named_buffers())}
    for value in [value for value in exported.graph.input if value.name in weights]:
        tensor = value.type.tensor_type
        exported.graph.initializer.add(
            name=value.name, data_type=tensor.elem_type, dims=[dim.dim_value for dim in tensor.shape.dim]
        )
        exported.graph.input.remove(value)
    return exported


def _by_capture(module: torch.nn.Module, arguments: tuple) -> onnx.ModelProto:
    """By torch.export, which follows what tracing cannot; takes ten times as long."""
    import torch

    # Its optimisation would fold batch normalisation into convolutions.
    return torch.onnx.export(
        module, arguments, dynamo=True, opset_version=_OPSET, verbose=False, optimize=False
    ).model_proto


@contextmanager
def _for_inference(module: torch.nn.Module) -> Iterator[None]:
    """The module in inference mode, each of its parts as it was afterwards."""
    import torch

    modes = {part: part.training for part in module.modules()}
    fast_path = torch.backends.mha.get_fastpath_enabled()
    try:
        module.eval()
        torch.backends.mha.set_fastpath_enabled(False)  # a whole layer as one operator, which ONNX does not have
        with torch.no_grad():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)
        for part, training in modes.items():
            part.training = training


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's remarks about itself, and the graphs that it prints when it gives up."""
    import torch

    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    with suppress(AttributeError):  # where a later torch has no such setting, it has no such output
        torch._C._jit_set_onnx_log_output_stream("stderr")
    sys.stderr.flush()
    errors, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)  # its compiled half writes past sys.stderr
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(errors, 2)
        os.close(errors)
        os.close(nowhere)
        logger.setLevel(level)


def load_module(spec: str) -> tuple[torch.nn.Module, Any]:
    """Import ``module:function`` and call the function, which has to return a module and its example inputs.

    This runs the user's code, on the user's word.

    Raises:
        ModelFileError: torch is missing, there is no such module or function, or it fails or returns something else.
    """
    module_name, _, function_name = spec.partition(":")
    try:
        import torch
    except ModuleNotFoundError:
        raise ModelFileError(f"'{spec}' needs torch: pip install 'gnnperf[train]'") from None
    sys.path.insert(0, "")  # as `python -m` has it
    try:
        function = getattr(importlib.import_module(module_name), function_name)
        result = function()
    except AttributeError as error:
        raise ModelFileError(f"'{spec}': {_first_line(error)}") from None
    except ModuleNotFoundError as error:
        raise ModelFileError(f"'{spec}': there is no Python module {error.name!r} here or in the path") from None
    except (Exception, SystemExit) as error:  # the user's code
        raise ModelFileError(f"'{spec}' failed: {type(error).__name__}: {_first_line(error)}") from None
    finally:
        sys.path.remove("")
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], torch.nn.Module)):
        raise ModelFileError(
            f"'{spec}' has to return a torch.nn.Module and its example inputs, not {_described(result)}"
        )
    return result


def _origin(error: BaseException) -> BaseException:
    """The error that others were made of."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def _described(value: object) -> str:
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, tuple) else type(value).__name__
