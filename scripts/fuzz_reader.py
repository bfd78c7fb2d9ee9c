"""Fuzz the ONNX reader: damaged models must be read or refused in one line, in bounded time and memory.

    python scripts/fuzz_reader.py [--cases 50000] [--seed 0] [--crashes fuzz-crashes]

A case is a small model (operator models of the onnx package and of the zoo) that was changed in its bytes or in its
fields; it follows from the seed and its number alone. Workers are processes: one that dies or does not come back is a
finding, too. What broke is written to the folder of crashes as an ONNX file; the exit status is 1 if anything did.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import random
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import EncodeError, Message
from onnx import TensorProto, helper

from gnnperf import zoo
from gnnperf.errors import ModelFileError
from gnnperf.graph import read_graph, to_arrays

CASE_SECONDS = 10
CASE_MEMORY_BYTES = 1 << 30
_SEED_BYTES = 20_000  # larger models are mutated as often, and read more slowly
_LONGEST_MESSAGE = 2_000
_NUMBERS = (0, 1, -1, 2, 3, 7, 64, 255, 2**16, 2**31 - 1, -(2**31), 2**32, 2**62, 2**63 - 1, -(2**63))
_FLOATS = (0.0, -1.0, 0.5, 1e30, float("inf"), float("nan"))
_FUNCTION_SEEDS = 40  # as often as models of two operators come
_ZOO_SEEDS = ("lenet5", "bert?layers=1&hidden=64&heads=2", "nasbench201/012340")
_INTEGERS = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}


class Fuzzer:
    """Makes the cases of one seed.

    Attributes:
        seed: with a number, decides a case entirely.
        models: serialised models that are mutated.
    """

    def __init__(self, seed: int, models: list[bytes] | None = None) -> None:
        self.seed = seed
        self.models = models or seed_models()

    def case(self, number: int) -> bytes:
        """The bytes of a case."""
        rng = random.Random(f"{self.seed}/{number}")
        content = rng.choice(self.models)
        if rng.random() < 0.65:
            content = self._mutate_fields(content, rng)
            if rng.random() < 0.85:
                return content
        return self._mutate_bytes(bytearray(content), rng)

    def _mutate_bytes(self, content: bytearray, rng: random.Random) -> bytes:
        for _ in range(rng.choice((1, 1, 2, 4, 16))):
            if not content:
                break
            start = rng.randrange(len(content))
            end = min(len(content), start + rng.choice((1, 2, 8, 64)))
            action = rng.randrange(6)
            if action == 0:
                content[start] ^= 1 << rng.randrange(8)
            elif action == 1:
                content[start] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            elif action == 2:
                del content[start:end]
            elif action == 3:
                content[start:start] = content[start:end]
            elif action == 4:
                other = rng.choice(self.models)
                at = rng.randrange(len(other))
                content[start:end] = other[at : at + end - start]
            else:
                del content[start:]
        return bytes(content)

    def _mutate_fields(self, content: bytes, rng: random.Random) -> bytes:
        model = onnx.ModelProto.FromString(content)
        for _ in range(rng.choice((1, 1, 2, 3, 8))):
            messages = list(_messages(model))
            message = rng.choice(messages)
            fields = [field for field, _ in message.ListFields()] or list(message.DESCRIPTOR.fields)
            if rng.random() < 0.15:
                fields = list(message.DESCRIPTOR.fields)
            _mutate_field(message, rng.choice(fields), messages, rng)
        try:
            return model.SerializeToString()
        except (EncodeError, ValueError):
            return content


def seed_models() -> list[bytes]:
    """Small models of every operator, every control-flow construct, functions, and a few whole networks."""
    from onnx.backend.test.case.node import collect_testcases

    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        models = [case.model for case in collect_testcases(None)] + [zoo.build(spec, 1) for spec in _ZOO_SEEDS]
    models += [_with_functions()] * _FUNCTION_SEEDS
    contents = []
    for model in models:
        content = model.SerializeToString()
        if len(content) > _SEED_BYTES:  # weights add no structure
            for tensor in model.graph.initializer:
                if len(tensor.raw_data) > 1024:
                    tensor.ClearField("raw_data")
            content = model.SerializeToString()
        if len(content) <= _SEED_BYTES:
            contents.append(content)
    return contents


def _with_functions() -> onnx.ModelProto:
    """A model of two local functions, one of which calls the other, and a branch."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    inner = [helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Add", ["b", "a"], ["c"])]
    outer = [helper.make_node("Inner", ["a"], ["b"], domain="local"), helper.make_node("Exp", ["b"], ["c"])]
    branch = helper.make_graph(
        [helper.make_node("Inner", ["x"], ["q"], domain="local")], "branch", [], [onnx.ValueInfoProto(name="q")]
    )
    nodes = [
        helper.make_node("Outer", ["x"], ["h"], domain="local"),
        helper.make_node("If", ["go"], ["y"], then_branch=branch, else_branch=branch),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4]),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
    ]
    graph = helper.make_graph(nodes, "net", inputs, [onnx.ValueInfoProto(name=name) for name in ("y", "h")])
    functions = [
        helper.make_function("local", name, ["a"], ["c"], body, opsets)
        for name, body in (("Inner", inner), ("Outer", outer))
    ]
    return helper.make_model(graph, functions=functions, opset_imports=opsets)


def _messages(message: Message) -> Iterator[Message]:
    pending, count = [message], 0
    while pending and count < _LONGEST_MESSAGE:
        current = pending.pop()
        count += 1
        yield current
        for field, value in current.ListFields():
            if field.message_type is not None:
                pending += value if field.is_repeated else [value]


def _mutate_field(message: Message, field: FieldDescriptor, messages: list[Message], rng: random.Random) -> None:
    value = getattr(message, field.name)
    if field.message_type is not None:
        _mutate_submessage(message, field, messages, rng)
    elif field.is_repeated:
        action = rng.randrange(4)
        if action == 0 and len(value):
            del value[rng.randrange(len(value))]
        elif action == 1 and len(value) > 1:
            shuffled = list(value)
            rng.shuffle(shuffled)
            value[:] = shuffled
        elif action == 2 and len(value):
            value[rng.randrange(len(value))] = _scalar(field, messages, rng)
        else:
            value.append(_scalar(field, messages, rng))
    elif rng.random() < 0.15:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _scalar(field, messages, rng))


def _mutate_submessage(message: Message, field: FieldDescriptor, messages: list[Message], rng: random.Random) -> None:
    donors = [other for other in messages if other.DESCRIPTOR is field.message_type]
    donor = type(rng.choice(donors))() if donors and rng.random() < 0.1 else rng.choice(donors) if donors else None
    if field.is_repeated:
        value = getattr(message, field.name)
        if len(value) and (donor is None or rng.random() < 0.5):
            del value[rng.randrange(len(value))]
        elif donor is not None and donor.ByteSize() < _SEED_BYTES:
            copy = type(donor)()
            copy.CopyFrom(donor)
            value.insert(rng.randrange(len(value) + 1), copy)
    elif donor is None or rng.random() < 0.5:
        message.ClearField(field.name)
    elif donor.ByteSize() < _SEED_BYTES:
        copy = type(donor)()
        copy.CopyFrom(donor)
        getattr(message, field.name).CopyFrom(copy)


def _scalar(field: FieldDescriptor, messages: list[Message], rng: random.Random) -> object:
    """A value that the field can hold: an extreme one, or one that stands elsewhere in the model."""
    if field.enum_type is not None:
        return rng.choice(field.enum_type.values).number
    if field.type in _INTEGERS:
        low, high = _INTEGERS[field.type]
        return min(max(rng.choice((*_NUMBERS, rng.randrange(-8, 40))), low), high)
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return rng.choice(_FLOATS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice((b"", b"\xff\xfe", bytes(rng.randrange(256) for _ in range(rng.choice((1, 8, 64))))))
    texts = []
    for message in rng.sample(messages, min(len(messages), 12)):
        for other, value in message.ListFields():
            if other.type == FieldDescriptor.TYPE_STRING:
                texts += value if other.is_repeated else [value]
    return rng.choice([*texts, "", "x", "two\nlines\x1b[31m", rng.choice(_OPERATOR_NAMES)])


_OPERATOR_NAMES = sorted({schema.name for schema in onnx.defs.get_all_schemas()})


def check(content: bytes) -> str:
    """Read a case: ``read``, ``refused``, ``refused by the last resort``, or what is wrong with what came out.

    The last resort is the handler of any error that nobody foresaw: one line for the user, but worth a look.
    """
    try:
        arrays = to_arrays(read_graph(content))
    except ModelFileError as error:
        if "\n" in str(error):
            return "crash: a message of several lines"
        return "refused by the last resort" if "breaks the ONNX specification" in str(error) else "refused"
    except Exception as error:
        return f"crash: {type(error).__name__}: {error}"
    if not np.isfinite(arrays.node).all() or (arrays.node < 0).any() or (arrays.edge_bytes < 0).any():
        return "crash: a quantity that is negative or not finite"
    if (arrays.edge_index[0] >= arrays.edge_index[1]).any():
        return "crash: an edge that leads backwards"
    return "read"


def _work(fuzzer: Fuzzer, numbers: range, current, results, limit_memory: bool) -> None:
    """Run cases in a process of their own; ``current`` says which one is under way."""
    if limit_memory:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + CASE_MEMORY_BYTES,) * 2)
    for number in numbers:
        current.value = number
        results.put((number, check(fuzzer.case(number))))


def fuzz(
    fuzzer: Fuzzer, numbers: range, report: Callable[[int, bytes, str], None], progress=None
) -> collections.Counter:
    """Run cases ``numbers``; every crash is reported with its number, bytes and reason.

    Returns:
        How many cases ended how; crashes, hangs and dead workers count as ``crash``.
    """
    counts = collections.Counter()
    context = multiprocessing.get_context("fork")
    next_number = numbers.start
    while next_number < numbers.stop:
        current, results = context.Value("q", next_number, lock=False), context.SimpleQueue()
        rest = range(next_number, numbers.stop)
        worker = context.Process(target=_work, args=(fuzzer, rest, current, results, sys.platform == "linux"))
        worker.start()
        last = time.monotonic()
        while True:
            if results.empty():
                if not worker.is_alive() and results.empty():
                    break
                if time.monotonic() - last > CASE_SECONDS:
                    break
                time.sleep(0.002)
                continue
            number, verdict = results.get()
            last, next_number = time.monotonic(), number + 1
            kind = verdict.split(":")[0]
            counts[kind] += 1
            if kind == "crash":
                report(number, fuzzer.case(number), verdict)
            if progress is not None:
                progress(counts)
        if next_number < numbers.stop:  # the worker died, or its case takes too long
            reason = "crash: longer than 10 s" if worker.is_alive() else f"crash: process ended, {worker.exitcode}"
            counts["crash"] += 1
            report(next_number, fuzzer.case(next_number), reason)
            next_number += 1
        worker.kill()
        worker.join()
    return counts


def main() -> None:
    """Fuzz, and print how the cases ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=50_000)
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--crashes", type=Path, default=Path("fuzz-crashes"), help="folder for what broke")
    arguments = parser.parse_args()

    def report(number: int, content: bytes, reason: str) -> None:
        arguments.crashes.mkdir(parents=True, exist_ok=True)
        path = arguments.crashes / f"{arguments.seed}-{number}.onnx"
        path.write_bytes(content)
        print(f"{path}: {reason}", flush=True)

    def progress(counts: collections.Counter) -> None:
        if counts.total() % 5000 == 0:
            print(f"{counts.total():,} cases: {dict(counts)}", flush=True)

    numbers = range(arguments.start, arguments.start + arguments.cases)
    counts = fuzz(Fuzzer(arguments.seed), numbers, report, progress)
    print(", ".join(f"{count:,} {kind}" for kind, count in counts.most_common()))
    sys.exit(1 if counts["crash"] else 0)


if __name__ == "__main__":
    main()
