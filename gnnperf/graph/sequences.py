"""Sequences of tensors: which tensors they hold, as long as that does not depend on data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gnnperf.graph.traced import Operator, TracedTensor

_MAX_ITEMS = 128  # longer ones are not followed

Items = tuple[TracedTensor, ...]


def sequence_items(operator: Operator) -> Items | None:
    """The tensors in the sequence that an operator makes, None where they are not known."""
    items = _MAKERS[operator.op](operator) if operator.op in _MAKERS else None
    return items if items is None or len(items) <= _MAX_ITEMS else None


def item_at(operator: Operator) -> TracedTensor | None:
    """The tensor that a SequenceAt takes; any of them where the position is not known but all are alike."""
    items = operator.inputs[0].items
    position = _position(operator, 1)
    if not items:
        return operator.inputs[0].item
    if position is not None:
        return items[position]
    first = items[0]
    return first if all(item.shape == first.shape and item.dtype == first.dtype for item in items) else None


def _position(operator: Operator, index: int) -> int | None:
    tensor = operator.input(index)
    return None if tensor is None or tensor.value is None else int(tensor.value.reshape(-1)[0])


def _inserted(operator: Operator) -> Items | None:
    items, position = operator.inputs[0].items, _position(operator, 2)
    if items is None or (position is None and operator.input(2) is not None):
        return None
    kept = list(items)
    kept.insert(len(items) if position is None else position, operator.inputs[1])
    return tuple(kept)


def _erased(operator: Operator) -> Items | None:
    items, position = operator.inputs[0].items, _position(operator, 1)
    if items is None or (position is None and operator.input(1) is not None):
        return None
    kept = list(items)
    del kept[-1 if position is None else position]
    return tuple(kept)


def _split(operator: Operator) -> Items | None:
    source, split = operator.inputs[0], operator.input(1)
    if not source.shape:
        return None
    axis = operator.attributes.get("axis", 0) % source.rank
    size, keep = source.shape[axis], True
    if split is None:
        sizes, keep = (1,) * min(size, _MAX_ITEMS + 1), bool(operator.attributes.get("keepdims", 1))
    elif split.value is None:
        return None
    elif split.value.ndim:
        sizes = tuple(int(part) for part in split.value)
    else:
        sizes = _chunks(size, int(split.value))
    before, after = source.shape[:axis], source.shape[axis + 1 :]
    return tuple(
        TracedTensor(f"{source.name}[{i}]", source.dtype, (*before, part, *after) if keep else (*before, *after))
        for i, part in enumerate(sizes)
    )


def _chunks(size: int, length: int) -> Sequence[int]:
    if length < 1 or size > length * _MAX_ITEMS:
        return (0,) * (_MAX_ITEMS + 1)
    return tuple(min(length, size - start) for start in range(0, size, length))


def joined_shape(operator: Operator) -> tuple[int, ...] | None:
    """Shape of a ConcatFromSequence."""
    items = operator.inputs[0].items
    if not items or any(item.shape is None for item in items):
        return None
    shapes, axis = [item.shape for item in items], operator.attributes["axis"]
    first = shapes[0]
    if operator.attributes.get("new_axis", 0):
        axis %= len(first) + 1
        return (*first[:axis], len(items), *first[axis:])
    axis %= len(first)
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def sequence_length(operator: Operator) -> np.ndarray | None:
    """Value of a SequenceLength."""
    items = operator.inputs[0].items if operator.inputs[0] is not None else None
    return None if items is None else np.array(len(items), np.int64)


_MAKERS = {
    "SequenceConstruct": lambda operator: tuple(operator.inputs),
    "SequenceEmpty": lambda operator: (),
    "SequenceErase": _erased,
    "SequenceInsert": _inserted,
    "SplitToSequence": _split,
}
