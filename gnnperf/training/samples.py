"""Measurement rows as optimisation steps: which rows a step draws, and the tensors that they become."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset

from gnnperf.conditions import Conditions, Optimizer, Phase, Precision, Stack, Window
from gnnperf.datasets.graph_store import GraphStore
from gnnperf.datasets.splits import SEARCH_SPACES
from gnnperf.devices import get_device
from gnnperf.devices.features import device_features
from gnnperf.graph import GraphArrays, collate
from gnnperf.training.config import BatchMix, Focus


class Step(NamedTuple):
    """What one optimisation step sees; G graphs.

    Attributes:
        graphs: the first six inputs of :meth:`LatencyNetwork.forward`.
        device: ``[G, len(DEVICE_FIELDS)]``.
        conditions: ``[G, 7]``.
        latency_ms: ``[G]`` measured; 0 where a graph has no label.
        weight: ``[G]`` weight in the loss; 0 where a graph has no label.
        is_model: ``[G]`` whether the row is a whole network outside the search spaces.
        network: ``[G, 2]``, see :func:`row_networks`.
        seed: for what the step itself draws at random.
    """

    graphs: tuple[Tensor, ...]
    device: Tensor
    conditions: Tensor
    latency_ms: Tensor
    weight: Tensor
    is_model: Tensor
    network: Tensor
    seed: int


def row_group(frame: pd.DataFrame) -> np.ndarray:
    """``[rows]`` of ``"layer"``, ``"search_space"`` or ``"model"``."""
    space = frame["family"].isin(SEARCH_SPACES).to_numpy()
    return np.where((frame["kind"] == "layer").to_numpy(), "layer", np.where(space, "search_space", "model"))


def row_device_slugs(frame: pd.DataFrame) -> np.ndarray:
    """``[rows]`` slugs; a device of one's own stands in the table as the file that describes it."""
    device = pd.Categorical(frame["device"])
    return np.array([get_device(name).slug for name in device.categories], object)[device.codes]


def row_campaigns(frame: pd.DataFrame) -> np.ndarray:
    """``[rows]`` names of measurement campaigns: a source measures each device, and each search space, in one go."""
    keys = frame[["source", "family"]].astype(str).assign(device=row_device_slugs(frame))
    keys["family"] = keys["family"].where(keys["family"].isin(SEARCH_SPACES), "")
    number = keys.groupby(list(keys.columns)).ngroup().to_numpy()
    distinct = keys.assign(number=number).drop_duplicates("number").sort_values("number")
    names = [campaign_name(row.source, row.device, row.family) for row in distinct.itertuples()]
    return np.array(names, object)[number] if len(frame) else np.zeros(0, object)


def campaign_name(source: str, device: str, family: str) -> str:
    """How the network knows a campaign; ``device`` is a slug."""
    return f"{source}/{device}/{family}" if family in SEARCH_SPACES else f"{source}/{device}"


def campaign_device(name: str) -> str:
    """Slug of a campaign's device."""
    return name.split("/")[1]


def own_level_campaigns(frame: pd.DataFrame) -> tuple[str, ...]:
    """Campaigns that measured layers and search spaces, but no other networks."""
    campaigns, is_model = row_campaigns(frame), row_group(frame) == "model"
    return tuple(sorted(set(campaigns[~is_model]) - set(campaigns[is_model])))


def row_conditions(frame: pd.DataFrame, campaigns: tuple[str, ...], devices: tuple[str, ...]) -> np.ndarray:
    """``[rows, 7]`` int64: what the network takes as ``conditions``; an unknown campaign or device is 0."""
    enums = {"phase": Phase, "precision": Precision, "stack": Stack, "window": Window, "optimizer": Optimizer}
    values = {name: {str(member): i for i, member in enumerate(enum)} for name, enum in enums.items()}
    columns = []
    for name, numbers in values.items():
        column = pd.Categorical(frame[name])
        columns.append(np.array([numbers.get(category, 0) for category in column.categories])[column.codes])
    for known, column in ((campaigns, row_campaigns(frame)), (devices, row_device_slugs(frame))):
        numbers = {name: i + 1 for i, name in enumerate(known)}
        names, codes = np.unique(np.asarray(column).astype(str), return_inverse=True)
        columns.append(np.array([numbers.get(name, 0) for name in names], np.int64)[codes])
    return np.stack(columns, axis=1).astype(np.int64)


def row_networks(frame: pd.DataFrame) -> np.ndarray:
    """``[rows, 2]`` number of the network, and of the network under its stack, in one phase; 0 for rows of no model.

    Forward, backward and whole training steps of a network count as one phase.
    """
    is_model = row_group(frame) == "model"
    models = frame.loc[is_model, ["model", "precision", "stack"]].astype(str)
    models["inference"] = (frame.loc[is_model, "phase"] == "inference").to_numpy()
    numbers = np.zeros((len(frame), 2), np.int64)
    for column, keys in enumerate((["model", "precision", "inference"], ["model", "precision", "inference", "stack"])):
        numbers[is_model, column] = models.groupby(keys).ngroup().to_numpy() + 1
    return numbers


def row_devices(frame: pd.DataFrame) -> np.ndarray:
    """``[rows, len(DEVICE_FIELDS)]`` float32 device features at each row's precision."""
    device, precision = (pd.Categorical(frame[name]) for name in ("device", "precision"))
    table = np.stack(
        [
            [device_features(get_device(slug), Precision(name)) for name in precision.categories]
            for slug in device.categories
        ]
    )
    return table.astype(np.float32)[device.codes, precision.codes]


class TrainingSteps(TorchDataset):
    """Step number -> :class:`Step`. The same seed and number always give the same step, so a run can resume exactly.

    Whole models are drawn evenly over (source, device, stack, phase) cells and then within the cell, so that large
    campaigns do not drown small ones; search spaces and layers are drawn evenly over their rows.

    Args:
        frame: rows to train on.
        store: their graphs.
        campaigns: those that the network knows.
        devices: those that the network knows.
        mix: how many graphs of each kind a step has.
        loss_weight: weight in the loss by kind of row; 0 where a kind is not named.
        unlabelled: graphs without latencies, at batch 1.
        steps: number of steps; those in which other devices settle come after them.
        seed: of everything drawn.
        focus: devices that are preferred, and from when on.

    Attributes:
        campaigns: as given.
        devices: as given.
        networks: how many networks the rows have, and how many pairs of network and stack.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        store: GraphStore,
        campaigns: tuple[str, ...],
        devices: tuple[str, ...],
        mix: BatchMix,
        loss_weight: dict[str, float],
        unlabelled: list[GraphArrays],
        steps: int,
        seed: int,
        focus: Focus = Focus(),
    ) -> None:
        self.campaigns = campaigns
        self.devices = devices
        self._store = store
        self._seed = seed
        self._mix = mix
        self._unlabelled = unlabelled
        self._loss_weight = loss_weight
        self._keys = frame["graph_key"].astype(str).to_numpy()
        self._batch = frame["batch"].to_numpy()
        self._latency = frame["latency_ms"].to_numpy(np.float32)
        self._device = row_devices(frame)
        self._conditions = row_conditions(frame, campaigns, devices)
        self._network = row_networks(frame)
        self.networks = tuple(int(count) for count in self._network.max(axis=0, initial=0))
        group = row_group(frame)
        self._rows = {name: np.flatnonzero(group == name) for name in ("model", "search_space", "layer")}
        cells = frame.iloc[self._rows["model"]][["source", "device", "stack", "phase", "precision"]]
        codes = cells.groupby(list(cells.columns), observed=True).ngroup().to_numpy()
        size = np.bincount(codes)[codes] if len(codes) else np.zeros(0)
        # The square root lies between "every row counts the same" and "every cell counts the same".
        chance = {name: np.ones(len(rows)) for name, rows in self._rows.items()} | {"model": 1 / np.sqrt(size)}
        on_device = np.isin(row_device_slugs(frame), list(focus.slugs))
        preferred = np.where(_in_focus(frame, group, on_device), focus.weight, 1.0)
        focused = {name: values * preferred[self._rows[name]] for name, values in chance.items()}
        self._focus_step = round(focus.start * steps)
        self._chance, self._focused = _normalised(chance), _normalised(focused)
        settling = chance["model"] * ~on_device[self._rows["model"]]
        self._settling = _normalised({"model": settling})
        self._settle_step = steps
        self._total = steps + (focus.settle_steps if focus.devices and settling.any() else 0)

    def __len__(self) -> int:
        return self._total

    def __getitem__(self, step: int) -> Step:
        if not 0 <= step < self._total:
            raise IndexError(step)
        random = np.random.default_rng([self._seed, step])
        settles = step >= self._settle_step
        chances = self._settling if settles else self._focused if step >= self._focus_step else self._chance
        rows, weights = [], []
        for name, chance in chances.items():
            candidates, wanted = self._rows[name], min(getattr(self._mix, name), np.count_nonzero(chance))
            if not wanted:
                continue
            drawn = random.choice(candidates, wanted, replace=False, p=chance)
            rows.append(drawn)
            weights.append(np.full(len(drawn), self._loss_weight.get(name, 0.0) / len(drawn), np.float32))
        rows, weights = np.concatenate(rows), np.concatenate(weights)
        graphs = [self._store[self._keys[row]].at_batch(int(self._batch[row])) for row in rows]
        device, conditions, latency = self._device[rows], self._conditions[rows], self._latency[rows]

        extra = 0 if settles else min(self._mix.unlabelled, len(self._unlabelled))
        if extra:
            chosen = random.choice(len(self._unlabelled), extra, replace=False)
            graphs += [self._unlabelled[i].at_batch(int(2 ** random.integers(0, 7))) for i in chosen]
            borrowed = random.choice(rows, extra)  # conditions under which they could have been measured
            device = np.concatenate([device, self._device[borrowed]])
            conditions = np.concatenate([conditions, self._conditions[borrowed]])
            latency = np.concatenate([latency, np.zeros(extra, np.float32)])
            weights = np.concatenate([weights, np.zeros(extra, np.float32)])
        is_model = np.isin(rows, self._rows["model"])
        return Step(
            graphs=graph_tensors(graphs),
            device=torch.from_numpy(device),
            conditions=torch.from_numpy(conditions),
            latency_ms=torch.from_numpy(latency),
            weight=torch.from_numpy(weights),
            is_model=torch.from_numpy(np.concatenate([is_model, np.zeros(extra, bool)])),
            network=torch.from_numpy(np.concatenate([self._network[rows], np.zeros((extra, 2), np.int64)])),
            seed=int(random.integers(2**31)),
        )


def _in_focus(frame: pd.DataFrame, group: np.ndarray, on_device: np.ndarray) -> np.ndarray:
    """``[rows]`` whether a row is of a device in focus (``on_device``), or tells what none of theirs does.

    What stacks differ by is learned from all devices. A stack that was measured in a phase on others alone would keep
    an effect that belongs to constants of long ago, if its rows were no longer drawn.
    """
    kind = frame[["stack", "phase"]].astype(str).assign(group=group)
    covered = pd.Series(on_device).groupby([kind[name].to_numpy() for name in kind]).transform("any").to_numpy()
    return on_device | ~covered


def _normalised(chance: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: values / (values.sum() or 1.0) for name, values in chance.items()}


def graph_tensors(graphs: list[GraphArrays]) -> tuple[Tensor, ...]:
    """The graph inputs of the network, in its order."""
    batch = collate(graphs)
    return tuple(
        torch.from_numpy(array)
        for array in (batch.op_class, batch.node, batch.edge_index, batch.edge_bytes, batch.node_graph, batch.graph)
    )


def conditions_of(row) -> Conditions:
    """A measurement row's conditions."""
    return Conditions(
        Phase(row.phase), Precision(row.precision), Stack(row.stack), Window(row.window), Optimizer(row.optimizer)
    )
