"""What a training run is made of: one YAML file in configs/, validated."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, ValidationError

from gnnperf.devices import get_device
from gnnperf.errors import TrainingError
from gnnperf.plain_yaml import read_plain_yaml


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class DataConfig(_Section):
    """Which measurements are used, and which are kept out.

    Attributes:
        held_out_families: never seen in training; metrics on them are reported.
        devices: only these (empty: every GPU in the data).
        sources: only these (empty: all).
        precisions: only these.
        published: train on data/published.csv, which ships with gnnperf, instead of a folder of imported sources.
        search_space_share: share of each NAS search space's graphs that is trained on; the rest is reported.
        layer_rows: how many single-layer rows are used at most (0: none), drawn at random by the seed.
        source_networks: how many networks of a source outside the search spaces are used at most, drawn by the seed
            (0: all). A source of thousands weighs more than others, and teaches what its networks are like.
    """

    published: bool = False
    held_out_families: tuple[str, ...] = ("lenet", "alexnet", "vgg")
    devices: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ("fp32",)
    search_space_share: float = Field(0.8, gt=0, lt=1)
    layer_rows: int = Field(60_000, ge=0)
    source_networks: int = Field(0, ge=0)


class NetworkSection(_Section):
    """Architecture; see :class:`gnnperf.nn.network.NetworkConfig`."""

    depth: int = Field(2, ge=0, le=8)
    width: int = Field(64, ge=8, le=512)
    local_width: int = Field(64, ge=8, le=512)
    aggregator: Literal["mean", "sum", "max"] = "mean"
    edge_features: bool = True
    readout: Literal["roofline", "pooled"] = "roofline"
    dropout: float = Field(0.0, ge=0, lt=1)
    tiled_kernels: bool = True
    launches: bool = True
    local_bound: float = Field(0.7, gt=0, le=10)
    context_bound: float = Field(0.6, gt=0, le=10)


class BatchMix(_Section):
    """Graphs of each kind in one optimisation step."""

    model: int = Field(32, ge=1)  # whole networks outside the NAS search spaces
    search_space: int = Field(24, ge=0)
    layer: int = Field(256, ge=0)
    unlabelled: int = Field(8, ge=0)  # zoo graphs without a latency: the corrections are pulled to zero on them


class Focus(_Section):
    """Devices that the network is trained for; what comes before is pre-training on all of them.

    Attributes:
        devices: names; none: all rows count the same from first to last.
        start: share of the steps after which their rows are preferred, and those of stacks that only others measured.
        weight: how many times likelier than another device's such rows are drawn from then on.
        settle_steps: steps after all others, in which the effects of the other devices follow what has moved without
            them. Nothing else moves: the devices in focus are predicted as before.
    """

    devices: tuple[str, ...] = ()
    start: float = Field(0.0, ge=0, le=1)
    weight: float = Field(1.0, ge=1, le=1e6)
    settle_steps: int = Field(0, ge=0, le=10**9)

    @property
    def slugs(self) -> frozenset[str]:
        """The devices' slugs, however the configuration spells them.

        Raises:
            DeviceError: one of them is unknown.
        """
        return frozenset(get_device(name).slug for name in self.devices)


class OptimisationConfig(_Section):
    """How the network is fitted.

    Attributes:
        steps: optimisation steps; the learning rate follows one cosine to zero over them.
        learning_rate: peak, for the networks' weights.
        physics_learning_rate: peak, for the analytic constants.
        effect_learning_rate: peak, for the random effects; few rows of a step move each of them.
        weight_decay: AdamW's, on the networks' weights.
        loss: ``log_ratio`` or ``maple``.
        beta: see :func:`gnnperf.nn.losses.log_ratio_loss`.
        effect_weight: strength of the priors on all random effects.
        network_deviation: prior standard deviation of what single networks deviate by, and again by stack.
        physics_weight: strength of the prior on the analytic constants.
        correction_weight: strength of the pull of local and context corrections to zero.
        context_dropout: chance that a graph is predicted without context corrections in a step.
        campaign_dropout: chance that a whole network is predicted without its campaign's effect in a step.
        device_dropout: chance that a graph is predicted without the measured device's effect, as on an unknown device.
        focus: devices that the end of the training is about.
        alignment_weight: strength of the pull of operator states in unlabelled graphs to those in measured networks
            (:func:`gnnperf.nn.alignment.central_moment_discrepancy`).
    """

    steps: int = Field(6000, ge=1, le=10**9)
    learning_rate: float = Field(2e-3, gt=0, le=10)
    physics_learning_rate: float = Field(5e-3, gt=0, le=10)
    effect_learning_rate: float = Field(3e-2, gt=0, le=10)
    weight_decay: float = Field(1e-4, ge=0)
    loss: Literal["log_ratio", "maple"] = "log_ratio"
    beta: float = Field(0.05, gt=0)
    effect_weight: float = Field(4e-4, ge=0)
    network_deviation: float = Field(0.1, gt=0)
    physics_weight: float = Field(5e-3, ge=0)
    correction_weight: float = Field(1.0, ge=0)
    context_dropout: float = Field(0.3, ge=0, lt=1)
    campaign_dropout: float = Field(0.2, ge=0, lt=1)
    device_dropout: float = Field(0.1, ge=0, lt=1)
    focus: Focus = Focus()
    alignment_weight: float = Field(0.0, ge=0)
    batch: BatchMix = BatchMix()
    loss_weight: dict[Literal["model", "search_space", "layer"], NonNegativeFloat] = {
        "model": 1.0,
        "search_space": 0.03,
        "layer": 0.03,
    }

    @property
    def total_steps(self) -> int:
        """With those in which other devices settle, if there are rows of others."""
        return self.steps + (self.focus.settle_steps if self.focus.devices else 0)

    def scoring_only(self, device: str) -> OptimisationConfig:
        """The same for rows of one device: without settling, if it is in focus, as that would change nothing for it."""
        if get_device(device).slug not in self.focus.slugs:
            return self
        return self.model_copy(update={"focus": self.focus.model_copy(update={"settle_steps": 0})})


class TrainingConfig(_Section):
    """One training run."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*$")
    seed: int = Field(0, ge=0, lt=2**32)
    data: DataConfig = DataConfig()
    network: NetworkSection = NetworkSection()
    optimisation: OptimisationConfig = OptimisationConfig()

    @classmethod
    def from_yaml(cls, path: str | Path) -> TrainingConfig:
        """Read and validate a configuration.

        Raises:
            TrainingError: the file is missing, is no YAML, or has a key or value that is not allowed.
        """
        try:
            values = read_plain_yaml(Path(path))
        except OSError as error:
            raise TrainingError(f"cannot read the configuration {path}: {error.strerror}") from None
        except ValueError as error:  # also: not UTF-8, a date or number that does not exist
            raise TrainingError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"]) or "the file"
            raise TrainingError(f"{path}: {key}: {first['msg']}") from None
