"""What a prediction is: one latency with its parts, its interval, its memory, and what makes it uncertain."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from gnnperf.memory import MemoryEstimate


@dataclass(frozen=True, slots=True)
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

    def to_dict(self) -> dict:
        """Plain data for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


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
        memory: peak memory, part by part; follows from the graph, not from the trained network.
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
    memory: MemoryEstimate
    operators: list[OperatorLatency] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    nearest: str | None = None
    distance: float | None = None
    similarity: str | None = None

    def to_dict(self, top: int | None = None) -> dict:
        """Plain data for JSON, with the ``top`` slowest operators; with all of them by default."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        values["memory"] = self.memory.to_dict()
        values["operators"] = [operator.to_dict() for operator in self.operators[:top]]
        values["warnings"] = list(self.warnings)
        return values

    def to_row(self) -> dict:
        """One flat row of a table, keys in the order of :data:`ROW_FIELDS`: no operators, a column a part of memory."""
        row = {}
        for name, value in self.to_dict(top=0).items():
            if name == "memory":
                row |= {f"memory_{part}": size for part, size in value.items()}
            elif name != "operators":
                row[name] = " | ".join(value) if name == "warnings" else value
        return row


ROW_FIELDS: tuple[str, ...] = tuple(
    name
    for item in fields(LatencyPrediction)
    if item.name != "operators"
    for name in ([f"memory_{part.name}" for part in fields(MemoryEstimate)] if item.name == "memory" else [item.name])
)
"""Columns of :meth:`LatencyPrediction.to_row`."""
