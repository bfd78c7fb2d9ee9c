"""gnnperf: how long a neural network takes on a device you may not own, from its ONNX file alone."""

from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = ["LatencyPrediction", "Predictor", "__version__"]

if TYPE_CHECKING:
    from gnnperf.prediction import LatencyPrediction
    from gnnperf.predictor import Predictor


def __getattr__(name: str):
    """Load the predictor on first use: ``import gnnperf`` alone stays instant."""
    if name in ("LatencyPrediction", "Predictor"):
        from gnnperf import predictor

        return getattr(predictor, name)
    raise AttributeError(f"module 'gnnperf' has no attribute {name!r}")
