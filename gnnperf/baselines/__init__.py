"""What the network has to beat: analytic models, linear models, tables, and the published predictors."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gnnperf.baselines.baseline import Baseline


def _factory(module: str, class_name: str, **arguments: str) -> Callable[[], Baseline]:
    """Imports the baseline's module when it is made: half of them need torch, which takes seconds to import."""

    def make() -> Baseline:
        return getattr(import_module(f"gnnperf.baselines.{module}"), class_name)(**arguments)

    return make


BASELINES: dict[str, Callable[[], Baseline]] = {
    "roofline": _factory("roofline", "RooflineBaseline"),
    "refined-roofline": _factory("refined_roofline", "RefinedRooflineBaseline"),
    "linear": _factory("linear", "LinearBaseline"),
    "nearest-neighbour": _factory("nearest_neighbour", "NearestNeighbourBaseline"),
    "operator-lookup": _factory("operator_lookup", "OperatorLookupBaseline"),
    "layer-lookup": _factory("layer_lookup", "LayerLookupBaseline"),
    "justus2018": _factory("justus2018", "JustusBaseline"),
    "perfnetv2": _factory("perfnet", "PerfNetV2Baseline"),
    "resperfnet": _factory("resperfnet", "ResPerfNetBaseline", source="resperfnet"),
    "resperfnet-justus2018": _factory("resperfnet", "ResPerfNetBaseline", source="justus2018"),
    "nnlp": _factory("nnlp", "NNLPBaseline"),
    "cdmpp": _factory("cdmpp", "CDMPPBaseline"),
}
"""A fresh, unfitted baseline by name."""
