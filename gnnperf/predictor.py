"""The public face: an ONNX file, a device and conditions in, milliseconds out. Imports neither torch nor pandas."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from gnnperf.conditions import Conditions, Optimizer, Phase, Precision, Stack, Window
from gnnperf.devices import Device, get_device
from gnnperf.devices.features import device_features
from gnnperf.devices.roofline import graph_roofline_ms
from gnnperf.domain import Domain, phase_of
from gnnperf.errors import GnnperfError, ModelFileError
from gnnperf.graph import GraphArrays, OpGraph, collate, read_graph, to_arrays
from gnnperf.intervals import Intervals, input_terms
from gnnperf.similarity import MeasuredNetworks, Similarity, describe

NETWORK_FILE = "network.onnx"
DESCRIPTION_FILE = "predictor.json"
MEASURED_FILE = "measured.json"
FORMAT = 2
"""Of the files of a predictor; a network of another format takes other inputs."""
_INPUTS = {"op_class", "node", "edge_index", "edge_bytes", "node_graph", "graph", "device", "conditions"}
SHIPPED = Path(__file__).resolve().parent / "pretrained" / "base"
"""Folder of the predictor that is used where none is named."""


@dataclass(frozen=True)
class OperatorLatency:
    """An operator's part of a prediction.

    Attributes:
        name: the node's name in the file.
        op_type: the ONNX operator.
        op_class: the class that it was costed as.
        latency_ms: its part of the latency.
        share: the same as a fraction of the whole.
    """

    name: str
    op_type: str
    op_class: str
    latency_ms: float
    share: float


@dataclass(frozen=True)
class LatencyPrediction:
    """One prediction; the fields are the JSON that the command line prints.

    Attributes:
        model: the file's or graph's name.
        device: slug of the device.
        batch: batch size.
        phase: what is timed.
        precision: number format.
        stack: framework generation.
        window: what the timed window includes.
        optimizer: the update that a training step ends with.
        latency_ms: of the whole batch.
        low_ms: lower end of the 90 % interval, None where the predictor was not calibrated.
        high_ms: upper end.
        per_sample_ms: latency of the batch over its size.
        throughput_per_s: samples per second.
        roofline_ms: bound from peak and bandwidth alone (Williams et al. 2009), forward pass; not a prediction.
        macs: multiply-accumulates of the forward pass.
        parameters: trainable elements.
        operators: slowest first.
        warnings: sentences about what makes this prediction less certain.
        nearest: the most similar measured network and its conditions; None where the predictor does not say.
        distance: to it; 0: measured as it is, 1: as far as measured networks typically are from other families.
        similarity: ``close to``, ``at the edge of`` or ``far from`` the training data.
    """

    model: str
    device: str
    batch: int
    phase: str
    precision: str
    stack: str
    window: str
    optimizer: str
    latency_ms: float
    low_ms: float | None
    high_ms: float | None
    per_sample_ms: float
    throughput_per_s: float
    roofline_ms: float
    macs: int
    parameters: int
    operators: list[OperatorLatency] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    nearest: str | None = None
    distance: float | None = None
    similarity: str | None = None

    def to_dict(self) -> dict:
        """Plain data for JSON."""
        return asdict(self)


class Predictor:
    """A trained network, exported to ONNX, with the description of what it was trained on.

    >>> predictor = Predictor.load()
    >>> predictor.predict("resnet50.onnx", device="1080ti", batch=8).latency_ms  # doctest: +SKIP
    """

    def __init__(
        self,
        session,
        domain: Domain,
        campaigns: Sequence[str] = (),
        devices: Sequence[str] = (),
        measured: MeasuredNetworks | None = None,
        calibration: Intervals | None = None,
    ) -> None:
        self._session = session
        self.domain = domain
        self.campaigns = tuple(campaigns)
        self.devices = tuple(devices)
        self.measured = measured
        self.calibration = calibration

    @classmethod
    def load(cls, folder: str | Path | None = None) -> Predictor:
        """Load a predictor that ``gnnperf train`` wrote; without a folder, the one that is shipped.

        Raises:
            GnnperfError: the folder holds no valid predictor.
        """
        import onnxruntime

        folder = Path(folder) if folder is not None else SHIPPED
        try:
            description = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
            network = (folder / NETWORK_FILE).read_bytes()
            if description["format"] != FORMAT:
                raise ValueError(f"its format is {description['format']}, this gnnperf reads {FORMAT}: train it again")
            domain = Domain.from_dict(description["domain"])
            campaigns, devices = description["campaigns"], description["devices"]
            calibration = Intervals.from_dict(description["intervals"]) if "intervals" in description else None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise GnnperfError(
                f"{folder} holds no valid predictor ({type(error).__name__}: {error}); "
                f"it needs {NETWORK_FILE} and {DESCRIPTION_FILE} as `gnnperf train` writes them"
            ) from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        try:
            # From bytes: a file from elsewhere cannot make the runtime open other files beside it.
            session = onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions have no common base of their own
            reason = " ".join(str(error).split())
            raise GnnperfError(f"{folder / NETWORK_FILE} cannot be loaded: {reason}") from None
        if {port.name for port in session.get_inputs()} != _INPUTS:
            raise GnnperfError(
                f"{folder / NETWORK_FILE} is not a network that `gnnperf train` wrote, or of another version"
            )
        measured = _read_measured(folder / MEASURED_FILE)
        if calibration is not None and measured is None:
            raise GnnperfError(
                f"{folder / MEASURED_FILE} is missing, which the intervals need; `gnnperf train` writes it"
            )
        return cls(session, domain, campaigns, devices, measured, calibration)

    def predict(
        self,
        source,
        *,
        device: str | Path | Device = "1080ti",
        batch: int | None = None,
        phase: Phase | str = Phase.INFERENCE,
        precision: Precision | str = Precision.FP32,
        stack: Stack | str = Stack.PYTORCH,
        window: Window | str = Window.DEVICE,
        optimizer: Optimizer | str = Optimizer.SGD,
        dims: dict[str, int] | None = None,
        input_shapes: dict[str, tuple[int, ...]] | None = None,
    ) -> LatencyPrediction:
        """Predict one latency.

        Args:
            source: path of an ONNX file, its bytes, an ``onnx.ModelProto`` or an :class:`OpGraph`.
            device: registered name or alias, path of a YAML file, or a :class:`Device`.
            batch: batch size; None keeps the file's own, or 1 where it is free.
            phase: see :class:`Phase`.
            precision: see :class:`Precision`.
            stack: see :class:`Stack`.
            window: see :class:`Window`.
            optimizer: counts in a training step only.
            dims: values for named free dimensions.
            input_shapes: whole shapes for named inputs.

        Raises:
            ModelFileError: the file cannot be read or the shapes do not fit it.
            DeviceError: the device is unknown or its description invalid.
            GnnperfError: a condition is unknown.
            ValueError: there is no such phase, precision, stack, window or optimizer.
        """
        if not isinstance(source, OpGraph):
            graph = read_graph(source, batch=batch, dims=dims, input_shapes=input_shapes)
        elif batch is not None or dims or input_shapes:
            raise ModelFileError("an OpGraph has its shapes already: give batch, dims and input_shapes to read_graph")
        else:
            graph = source
        try:
            conditions = Conditions(
                Phase(phase), Precision(precision), Stack(stack), Window(window), Optimizer(optimizer)
            )
        except ValueError as error:
            raise GnnperfError(f"{error}; gnnperf.conditions lists what there is") from None
        return self.predict_graph(graph, [(get_device(device), conditions)])[0]

    def predict_graph(self, graph: OpGraph, cases: Iterable[tuple[Device, Conditions]]) -> list[LatencyPrediction]:
        """Predict one graph for several devices and conditions in one run of the network.

        Raises:
            ModelFileError: the graph has no operators.
        """
        if not graph.nodes:
            raise ModelFileError(f"{graph.name} computes nothing: all of it is constant, or it has no operators")
        arrays = to_arrays(graph)
        cases = [(device, _effective(conditions)) for device, conditions in cases]
        if not cases:
            return []
        latency_ms, node_ms = self.latencies([arrays] * len(cases), cases)
        similarities = self.similarities([arrays] * len(cases), cases)
        low_ms, high_ms = self._bounds([arrays] * len(cases), cases, latency_ms, similarities)
        predictions = []
        for i, ((device, conditions), latency, nodes) in enumerate(zip(cases, latency_ms, node_ms, strict=True)):
            latency, similarity = float(latency), similarities[i] if similarities else None
            slowest = np.argsort(-nodes, kind="stable")
            predictions.append(
                LatencyPrediction(
                    model=graph.name,
                    device=device.slug,
                    batch=graph.batch,
                    **{name: str(getattr(conditions, name)) for name in Conditions.__dataclass_fields__},
                    latency_ms=latency,
                    low_ms=float(low_ms[i]) if self.calibration else None,
                    high_ms=float(high_ms[i]) if self.calibration else None,
                    per_sample_ms=latency / graph.batch,
                    throughput_per_s=1e3 * graph.batch / latency,
                    roofline_ms=graph_roofline_ms(arrays, device, conditions.precision),
                    macs=graph.macs,
                    parameters=graph.parameters,
                    operators=[
                        OperatorLatency(
                            graph.nodes[j].name,
                            graph.nodes[j].op_type,
                            graph.nodes[j].op_class.name.lower(),
                            float(nodes[j]),
                            float(nodes[j]) / latency,
                        )
                        for j in slowest
                    ],
                    warnings=graph.warnings
                    + self.domain.warnings(arrays, nodes, device, conditions)
                    + ([str(similarity)] if similarity and similarity.is_far else []),
                    nearest=str(similarity.nearest) if similarity else None,
                    distance=similarity.distance if similarity else None,
                    similarity=similarity.words if similarity else None,
                )
            )
        return predictions

    def similarities(
        self, graphs: Sequence[GraphArrays], cases: Sequence[tuple[Device, Conditions]]
    ) -> list[Similarity] | None:
        """How near each of G graphs, on its device and under its conditions, is to the training data.

        None where the predictor does not know the networks that it was trained on.
        """
        if self.measured is None or not len(graphs):
            return None
        descriptors = [describe(graph, *case) for graph, case in zip(graphs, cases, strict=True)]
        return list(map(self.measured.similarity, *self.measured.distances(np.stack(descriptors))))

    def intervals(
        self,
        graphs: Sequence[GraphArrays],
        cases: Sequence[tuple[Device, Conditions]],
        latency_ms: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """90 % intervals of what :meth:`latencies` gave without campaigns; :mod:`gnnperf.intervals` says what they are.

        Args:
            graphs: G graphs.
            cases: device and conditions of each.
            latency_ms: ``[G]`` predictions.

        Returns:
            ``[G]`` lower and ``[G]`` upper ends in ms; NaN where the predictor was not calibrated.
        """
        return self._bounds(graphs, cases, np.asarray(latency_ms), self.similarities(graphs, cases))

    def _bounds(
        self,
        graphs: Sequence[GraphArrays],
        cases: Sequence[tuple[Device, Conditions]],
        latency_ms: np.ndarray,
        similarities: list[Similarity] | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        if self.calibration is None or similarities is None:
            return np.full(len(graphs), np.nan), np.full(len(graphs), np.nan)
        distances = np.array([similarity.distance for similarity in similarities])
        terms = input_terms(graphs, cases, self.domain, distances)
        return self.calibration.bounds(latency_ms, terms, [phase_of(conditions) for _, conditions in cases])

    def latencies(
        self,
        graphs: Sequence[GraphArrays],
        cases: Sequence[tuple[Device, Conditions]],
        campaigns: Sequence[str] | None = None,
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """The network alone: featurised graphs in, milliseconds out.

        Args:
            graphs: G graphs.
            cases: device and conditions of each.
            campaigns: measurement campaign of each, where its effect is wanted and known (evaluation).

        Returns:
            ``[G]`` latencies, and for each graph its ``[N]`` operators' parts.
        """
        batch = collate(graphs)
        campaign_number = {name: index + 1 for index, name in enumerate(self.campaigns)}
        device_number = {slug: index + 1 for index, slug in enumerate(self.devices)}
        device = np.stack([device_features(device, conditions.precision) for device, conditions in cases])
        conditions = np.array(
            [
                [
                    *conditions.indices(),
                    campaign_number.get(campaigns[i], 0) if campaigns is not None else 0,
                    # A user's device behaves like the one that its description starts from.
                    device_number.get(case_device.base or case_device.slug, 0),
                ]
                for i, (case_device, conditions) in enumerate(cases)
            ],
            np.int64,
        )
        latency_ms, node_ms = self._session.run(
            ["latency_ms", "node_ms"],
            {
                "op_class": batch.op_class,
                "node": batch.node,
                "edge_index": batch.edge_index,
                "edge_bytes": batch.edge_bytes,
                "node_graph": batch.node_graph,
                "graph": batch.graph,
                "device": device.astype(np.float32),
                "conditions": conditions,
            },
        )
        ends = np.cumsum([graph.num_nodes for graph in graphs])[:-1]
        return latency_ms, np.split(node_ms, ends)


def _read_measured(path: Path) -> MeasuredNetworks | None:
    """The measured networks; None where the predictor comes without, or with those of another version."""
    try:
        return MeasuredNetworks.from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise GnnperfError(f"{path} is damaged ({type(error).__name__}: {reason}); `gnnperf train` writes it") from None


def _effective(conditions: Conditions) -> Conditions:
    """An optimizer counts in a training step only; elsewhere it reads "none"."""
    if conditions.phase == Phase.TRAINING:
        return conditions
    return Conditions(conditions.phase, conditions.precision, conditions.stack, conditions.window, Optimizer.NONE)
