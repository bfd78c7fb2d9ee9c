"""The public face: an ONNX file, a device and conditions in, milliseconds out. Imports neither torch nor pandas."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gnnperf.conditions import Conditions, Optimizer, Phase, Precision, Stack, Window
from gnnperf.devices import Device, get_device
from gnnperf.devices.features import DEVICE_FIELDS, device_features
from gnnperf.devices.roofline import graph_roofline_ms
from gnnperf.domain import Domain, phase_of
from gnnperf.errors import DeviceError, GnnperfError, ModelFileError
from gnnperf.graph import GraphArrays, OpGraph, collate, read_graph, to_arrays
from gnnperf.intervals import Intervals, input_terms
from gnnperf.memory import MemoryEstimate, MemoryModel
from gnnperf.prediction import LatencyPrediction, OperatorLatency
from gnnperf.similarity import MeasuredNetworks, Similarity, describe

if TYPE_CHECKING:
    from gnnperf.graph_cache import GraphCache
    from gnnperf.many import Outcome, Source

NETWORK_FILE = "network.onnx"
DESCRIPTION_FILE = "predictor.json"
MEASURED_FILE = "measured.json"
FORMAT = 2
"""Of the files of a predictor; a network of another format takes other inputs."""
_RATES = [place for place, name in enumerate(DEVICE_FIELDS) if name.endswith(("_flops", "_bytes_s"))]
_INPUTS = {"op_class", "node", "edge_index", "edge_bytes", "node_graph", "graph", "device", "conditions"}
SHIPPED = Path(__file__).resolve().parent / "pretrained" / "base"
"""Folder of the predictor that is used where none is named."""


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
        self._files: _PredictorFiles | None = None

    @classmethod
    def load(cls, folder: str | Path | None = None) -> Predictor:
        """Load a predictor that ``gnnperf train`` wrote; without a folder, the one that is shipped.

        Raises:
            GnnperfError: the folder holds no valid predictor.
        """
        return cls._from_files(_PredictorFiles.read(Path(folder) if folder is not None else SHIPPED))

    @classmethod
    def _from_files(cls, files: _PredictorFiles) -> Predictor:
        import onnxruntime

        folder = files.folder
        try:
            description = json.loads(files.description)
            if description["format"] != FORMAT:
                raise ValueError(f"its format is {description['format']}, this gnnperf reads {FORMAT}: train it again")
            domain = Domain.from_dict(description["domain"])
            campaigns, devices = description["campaigns"], description["devices"]
            calibration = Intervals.from_dict(description["intervals"]) if "intervals" in description else None
        except (ValueError, KeyError, TypeError) as error:
            raise _no_predictor(folder, error) from None
        onnxruntime.disable_telemetry_events()  # it would write into the user's home folder
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        try:
            # From bytes: a file from elsewhere cannot make the runtime open other files beside it.
            session = onnxruntime.InferenceSession(files.network, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions have no common base of their own
            reason = " ".join(str(error).split())
            raise GnnperfError(f"{folder / NETWORK_FILE} cannot be loaded: {reason}") from None
        if {port.name for port in session.get_inputs()} != _INPUTS:
            raise GnnperfError(
                f"{folder / NETWORK_FILE} is not a network that `gnnperf train` wrote, or of another version"
            )
        measured = _parse_measured(folder / MEASURED_FILE, files.measured)
        if calibration is not None and measured is None:
            raise GnnperfError(
                f"{folder / MEASURED_FILE} is missing, which the intervals need; `gnnperf train` writes it"
            )
        predictor = cls(session, domain, campaigns, devices, measured, calibration)
        predictor._files = files
        return predictor

    def __reduce__(self):
        """Travel to another process, or machine, as the content of the files; they are parsed there once."""
        if self._files is None:
            raise TypeError("a predictor that was not loaded from files cannot be sent to another process")
        return _received, (self._files,)

    @cached_property
    def network_digest(self) -> str:
        """16 hexadecimal digits that tell networks apart, whatever else comes with them."""
        return hashlib.sha256(self._files.network).hexdigest()[:16] if self._files is not None else "0" * 16

    @property
    def digest(self) -> str:
        """Tells predictors apart by what their files hold."""
        return self._files.digest if self._files is not None else ""

    def predict(
        self,
        source,
        *,
        example_inputs=None,
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
            source: path of an ONNX file, its bytes, an ``onnx.ModelProto``, an :class:`OpGraph`, or, where torch is
                installed, a ``torch.nn.Module``.
            example_inputs: of a module alone: what it is called with, a tensor or a tuple of arguments.
            device: registered name or alias, path of a YAML file, or a :class:`Device`.
            batch: batch size; None keeps the file's own or the example's, or 1 where it is free.
            phase: see :class:`Phase`.
            precision: see :class:`Precision`.
            stack: see :class:`Stack`.
            window: see :class:`Window`.
            optimizer: counts in a training step only.
            dims: values for named free dimensions.
            input_shapes: whole shapes for named inputs.

        Raises:
            ModelFileError: the file cannot be read, the module not be exported, or the shapes do not fit.
            DeviceError: the device is unknown or its description invalid.
            GnnperfError: a condition is unknown.
        """
        if _is_module(source):
            from gnnperf.from_torch import read_module

            graph = read_module(source, example_inputs, batch=batch, dims=dims, input_shapes=input_shapes)
        elif example_inputs is not None:
            raise ModelFileError("example_inputs belong to a torch.nn.Module: a file says its shapes itself")
        elif not isinstance(source, OpGraph):
            graph = read_graph(source, batch=batch, dims=dims, input_shapes=input_shapes)
        elif batch is not None or dims or input_shapes:
            raise ModelFileError("an OpGraph has its shapes already: give batch, dims and input_shapes to read_graph")
        else:
            graph = source
        conditions = _make_conditions(phase, precision, stack, window, optimizer)
        return self.predict_graph(graph, [(get_device(device), conditions)])[0]

    def predict_many(
        self,
        sources: Source | Iterable[Source],
        *,
        device: str | Path | Device | Sequence[str | Path | Device] = "1080ti",
        batch: int | Sequence[int | None] | None = None,
        phase: Phase | str | Sequence[Phase | str] = Phase.INFERENCE,
        precision: Precision | str = Precision.FP32,
        stack: Stack | str = Stack.PYTORCH,
        window: Window | str = Window.DEVICE,
        optimizer: Optimizer | str = Optimizer.SGD,
        dims: dict[str, int] | None = None,
        input_shapes: dict[str, tuple[int, ...]] | None = None,
        top: int | None = None,
        jobs: int = 1,
        cache: GraphCache | None = None,
    ) -> Iterator[Outcome]:
        """Predict many networks; results come as they are ready, in the order of the sources.

        What cannot be predicted is an outcome with an error, and the others go on.

        Args:
            sources: paths of ONNX files, their bytes, ``onnx.ModelProto`` or :class:`OpGraph`; may be endless. A path
                is one source.
            device: one, or several that are all predicted.
            batch: one, or several; an :class:`OpGraph` takes None alone.
            phase: one, or several.
            precision: see :class:`Precision`.
            stack: see :class:`Stack`.
            window: see :class:`Window`.
            optimizer: counts in a training step only.
            dims: values for named free dimensions.
            input_shapes: whole shapes for named inputs.
            top: how many of its slowest operators a prediction lists; all by default.
            jobs: processes; -1 for all cores. More than one need joblib, and go where joblib's backend says: inside of
                ``joblib.parallel_config(backend="dask")`` to the workers of a cluster, which have to see the files.
            cache: where graphs are kept that were read before.

        Raises:
            DeviceError, GnnperfError: as :meth:`predict`, for what holds for all sources.
        """
        from gnnperf.many import Request, predict_many

        if not jobs:
            raise GnnperfError("jobs has to be at least 1, or -1 for all cores")
        if isinstance(sources, str | Path | bytes):
            sources = [sources]
        devices = [device] if isinstance(device, str | Path | Device) else device
        phases = [phase] if isinstance(phase, str) else phase
        batches = tuple(batch) if isinstance(batch, Sequence) else (batch,)
        for name, values in (("device", devices), ("phase", phases), ("batch", batches)):
            if not len(values):
                raise GnnperfError(f"no {name} is given: there is nothing to predict")
        conditions = [_make_conditions(part, precision, stack, window, optimizer) for part in phases]
        request = Request(
            cases=tuple((get_device(target), part) for target in devices for part in conditions),
            batches=batches,
            dims=dims,
            input_shapes=input_shapes,
            top=top,
        )
        return predict_many(self, sources, request, jobs=jobs, cache=cache)

    def predict_graph(
        self, graph: OpGraph, cases: Iterable[tuple[Device, Conditions]], top: int | None = None
    ) -> list[LatencyPrediction]:
        """Predict one graph for several devices and conditions in one run of the network.

        Raises:
            ModelFileError: the graph has no operators.
        """
        return self.predict_graphs([(graph, *case) for case in cases], top)

    def predict_graphs(
        self, inputs: Sequence[tuple[OpGraph, Device, Conditions]], top: int | None = None
    ) -> list[LatencyPrediction]:
        """Predict graphs, each on a device and under conditions, in one run of the network.

        Args:
            inputs: G of them.
            top: how many of its slowest operators a prediction lists; all by default.

        Raises:
            ModelFileError: a graph has no operators.
        """
        if not inputs:
            return []
        cases = [(device, _effective(conditions)) for _, device, conditions in inputs]
        networks: dict[int, _Network] = {}
        memory = []
        for (graph, _, _), case in zip(inputs, cases, strict=True):
            if id(graph) not in networks:
                networks[id(graph)] = _Network(graph)
            # At once, while its operators are in the processor's cache; a run of the network drives them out.
            memory.append(networks[id(graph)].memory.estimate(*case))
        featurised = [networks[id(graph)].arrays for graph, _, _ in inputs]
        latency_ms, node_ms = self.latencies(featurised, cases)
        similarities = self.similarities(featurised, cases)
        low_ms, high_ms = self._bounds(featurised, cases, latency_ms, similarities)
        return [
            self._prediction(
                networks[id(graph)],
                memory[i],
                *cases[i],
                float(latency_ms[i]),
                (float(low_ms[i]), float(high_ms[i])) if self.calibration else (None, None),
                node_ms[i],
                similarities[i] if similarities else None,
                top,
            )
            for i, (graph, _, _) in enumerate(inputs)
        ]

    def _prediction(
        self,
        network: _Network,
        memory: MemoryEstimate,
        device: Device,
        conditions: Conditions,
        latency_ms: float,
        interval_ms: tuple[float | None, float | None],
        node_ms: np.ndarray,
        similarity: Similarity | None,
        top: int | None,
    ) -> LatencyPrediction:
        graph, arrays = network.graph, network.arrays
        slowest = np.argsort(-node_ms, kind="stable")[:top]
        return LatencyPrediction(
            model=graph.name,
            device=device.slug,
            batch=graph.batch,
            **{name: str(getattr(conditions, name)) for name in Conditions.__dataclass_fields__},
            latency_ms=latency_ms,
            low_ms=interval_ms[0],
            high_ms=interval_ms[1],
            per_sample_ms=latency_ms / graph.batch,
            throughput_per_s=1e3 * graph.batch / latency_ms,
            roofline_ms=graph_roofline_ms(arrays, device, conditions.precision),
            macs=network.macs,
            parameters=network.parameters,
            memory=memory,
            operators=[
                OperatorLatency(node.name, node.op_type, node.op_class.name.lower(), time_ms, time_ms / latency_ms)
                for node, time_ms in ((graph.nodes[j], float(node_ms[j])) for j in slowest.tolist())
            ],
            warnings=graph.warnings
            + self.domain.warnings(arrays, node_ms, device, conditions)
            + ([str(similarity)] if similarity and similarity.is_far else []),
            nearest=str(similarity.nearest) if similarity else None,
            distance=similarity.distance if similarity else None,
            similarity=similarity.words if similarity else None,
        )

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
        """Featurised graphs in, milliseconds out; a device that was adapted is predicted with its correction.

        Args:
            graphs: G graphs.
            cases: device and conditions of each.
            campaigns: see :meth:`network_ms`; of no use where a device was adapted.

        Returns:
            ``[G]`` latencies, and for each graph its ``[N]`` operators' parts.

        Raises:
            DeviceError: a device was adapted to another network.
        """
        adapted = [device for device, _ in cases if device.correction is not None]
        for device in adapted:
            if device.correction.predictor != self.network_digest:
                raise DeviceError(
                    f"{device.name} was adapted to another predictor than this one: run `gnnperf adapt` again"
                )
        if adapted:
            from gnnperf.adaptation.components import corrected

            return corrected(self, graphs, cases)
        return self.network_ms(graphs, cases, campaigns)

    def network_ms(
        self,
        graphs: Sequence[GraphArrays],
        cases: Sequence[tuple[Device, Conditions]],
        campaigns: Sequence[str] | None = None,
        *,
        speed: float = 1.0,
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """What the network alone says, without the corrections of adapted devices.

        Args:
            graphs: G graphs.
            cases: device and conditions of each.
            campaigns: measurement campaign of each, where its effect is wanted and known (evaluation).
            speed: factor on all rates of every device, those of copies to it among them.

        Returns:
            ``[G]`` latencies, and for each graph its ``[N]`` operators' parts.
        """
        batch = collate(graphs)
        campaign_number = {name: index + 1 for index, name in enumerate(self.campaigns)}
        device_number = {slug: index + 1 for index, slug in enumerate(self.devices)}
        device = np.stack([device_features(device, conditions.precision) for device, conditions in cases])
        device[:, _RATES] *= speed
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


class _Network:
    """A graph, with what all its predictions have in common."""

    def __init__(self, graph: OpGraph) -> None:
        if not graph.nodes:
            raise ModelFileError(f"{graph.name} computes nothing: all of it is constant, or it has no operators")
        self.graph, self.arrays, self.memory = graph, to_arrays(graph), MemoryModel(graph)
        self.macs, self.parameters = graph.macs, graph.parameters


@dataclass(frozen=True)
class _PredictorFiles:
    """Content of the files of a predictor; the folder is for messages alone."""

    folder: Path
    network: bytes
    description: bytes
    measured: bytes | None

    @classmethod
    def read(cls, folder: Path) -> _PredictorFiles:
        try:
            network, description = (folder / NETWORK_FILE).read_bytes(), (folder / DESCRIPTION_FILE).read_bytes()
        except OSError as error:
            raise _no_predictor(folder, error) from None
        try:
            measured = (folder / MEASURED_FILE).read_bytes()
        except FileNotFoundError:
            measured = None
        except OSError as error:
            raise _damaged(folder / MEASURED_FILE, error) from None
        return cls(folder, network, description, measured)

    @cached_property
    def digest(self) -> str:
        content = (self.network, self.description, self.measured or b"")
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in content)).hexdigest()


@lru_cache(maxsize=4)
def _received(files: _PredictorFiles) -> Predictor:
    return Predictor._from_files(files)


def _no_predictor(folder: Path, error: Exception) -> GnnperfError:
    return GnnperfError(
        f"{folder} holds no valid predictor ({type(error).__name__}: {error}); "
        f"it needs {NETWORK_FILE} and {DESCRIPTION_FILE} as `gnnperf train` writes them"
    )


def _damaged(path: Path, error: Exception) -> GnnperfError:
    reason = " ".join(str(error).split())
    return GnnperfError(f"{path} is damaged ({type(error).__name__}: {reason}); `gnnperf train` writes it")


def _parse_measured(path: Path, content: bytes | None) -> MeasuredNetworks | None:
    """The measured networks; None where the predictor comes without, or with those of another version."""
    if content is None:
        return None
    try:
        return MeasuredNetworks.from_json(content.decode("utf-8"))
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(path, error) from None


def _effective(conditions: Conditions) -> Conditions:
    """An optimizer counts in a training step only; elsewhere it reads "none"."""
    if conditions.phase == Phase.TRAINING:
        return conditions
    return Conditions(conditions.phase, conditions.precision, conditions.stack, conditions.window, Optimizer.NONE)


def _make_conditions(
    phase: Phase | str,
    precision: Precision | str,
    stack: Stack | str,
    window: Window | str,
    optimizer: Optimizer | str,
) -> Conditions:
    """Conditions from their names.

    Raises:
        GnnperfError: there is no such phase, precision, stack, window or optimizer.
    """
    try:
        return Conditions(Phase(phase), Precision(precision), Stack(stack), Window(window), Optimizer(optimizer))
    except ValueError as error:
        raise GnnperfError(f"{error}; gnnperf.conditions lists what there is") from None


def _is_module(source: object) -> bool:
    """Whether something is a ``torch.nn.Module``, said without importing torch."""
    return any(
        kind.__module__ == "torch.nn.modules.module" and kind.__name__ == "Module" for kind in type(source).__mro__
    )
