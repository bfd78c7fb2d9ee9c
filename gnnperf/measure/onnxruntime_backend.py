"""Inference in onnxruntime: its own processor kernels, CUDA, or TensorRT."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnxruntime

from gnnperf.conditions import Window
from gnnperf.errors import MeasureError
from gnnperf.measure.models import RunnableModel

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
}


def require(target: str) -> None:
    """Refuse what this build of onnxruntime does not have.

    Raises:
        MeasureError: there is no such provider.
    """
    if PROVIDERS[target] not in onnxruntime.get_available_providers():
        raise MeasureError(
            f"onnxruntime {onnxruntime.__version__} was built without {PROVIDERS[target]}: install onnxruntime-gpu, or "
            "measure with another --backend"
        )


class OnnxruntimeInference:
    """A session with its inputs in place.

    Args:
        model: what to run.
        target: a key of :data:`PROVIDERS`.
        threads: for the operators of the processor.
        window: ``device`` keeps inputs and outputs on the device; ``session`` feeds and fetches arrays of the host.

    Raises:
        MeasureError: this build of onnxruntime has no such provider, or it cannot run the model.
    """

    version = onnxruntime.__version__

    def __init__(self, model: RunnableModel, target: str, threads: int, window: Window = Window.DEVICE) -> None:
        require(target)
        provider = PROVIDERS[target]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        # Random weights can give numbers so small that they cost extra; real ones hardly ever do.
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
        fallbacks = ["CUDAExecutionProvider"] if target == "tensorrt" else []
        providers = [provider, *fallbacks, *([] if target == "cpu" else ["CPUExecutionProvider"])]
        try:
            self._session = onnxruntime.InferenceSession(model.proto.SerializeToString(), options, providers=providers)
            if self._session.get_providers()[0] != provider:
                raise MeasureError(f"{provider} does not start on this machine: are its libraries installed?")
            self._feeds = model.random_inputs()
            self._binding = self._bound(target) if window == Window.DEVICE else None
            self.run()
        except MeasureError:
            raise
        except Exception as error:  # onnxruntime raises classes of its own, and RuntimeError
            raise MeasureError(f"{model.name}: onnxruntime cannot run it: {_first_line(error)}") from None

    def run(self) -> Sequence[float]:
        """One inference, finished on return; it has no parts."""
        if self._binding is None:
            self._session.run(None, self._feeds)
        else:
            self._session.run_with_iobinding(self._binding)
            self._binding.synchronize_outputs()
        return ()

    def peak_memory_mb(self) -> float:
        """NaN: onnxruntime does not tell."""
        return math.nan

    def _bound(self, target: str) -> onnxruntime.IOBinding:
        place = "cpu" if target == "cpu" else "cuda"
        binding = self._session.io_binding()
        for name, array in self._feeds.items():
            binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array, place, 0))
        for value in self._session.get_outputs():
            binding.bind_output(value.name, place)
        binding.synchronize_inputs()
        return binding


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__
