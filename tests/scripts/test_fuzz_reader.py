"""A short run of the fuzzer; scripts/fuzz_reader.py runs as many cases as one likes."""

import sys

import pytest

import fuzz_reader


@pytest.fixture(scope="module")
def fuzzer():
    return fuzz_reader.Fuzzer(seed=1000)


def test_no_case_breaks_the_reader(fuzzer):
    reported = []
    counts = fuzz_reader.fuzz(fuzzer, range(300), lambda number, content, reason: reported.append((number, reason)))
    assert reported == []
    assert counts.total() == 300 and min(counts["read"], counts["refused"]) > 50


def test_a_case_follows_from_its_seed_and_number(fuzzer):
    again = fuzz_reader.Fuzzer(1000, fuzzer.models)
    assert [again.case(n) for n in range(50)] == [fuzzer.case(n) for n in range(50)]
    assert fuzz_reader.Fuzzer(1001, fuzzer.models).case(0) != fuzzer.case(0)


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize("end", ["raise", "exit"])
def test_what_breaks_is_reported_and_the_run_goes_on(fuzzer, monkeypatch, end):
    broken = fuzzer.case(3)

    def read_graph(content):
        if content == broken:
            if end == "exit":
                import os

                os._exit(9)
            raise ZeroDivisionError("made")
        return original(content)

    original = fuzz_reader.read_graph
    monkeypatch.setattr(fuzz_reader, "read_graph", read_graph)
    reported = []
    counts = fuzz_reader.fuzz(fuzzer, range(8), lambda *crash: reported.append(crash))
    assert [(number, content) for number, content, _ in reported] == [(3, broken)]
    assert ("ZeroDivisionError" if end == "raise" else "process ended") in reported[0][2]
    assert counts.total() == 8 and counts["crash"] == 1
