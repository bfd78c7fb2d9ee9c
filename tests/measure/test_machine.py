"""What is noted of the machine, what disturbed, and what energy it took."""

import json
import subprocess
import sys
import time
from functools import partial

import psutil
import pytest

from gnnperf.measure import quietness
from gnnperf.measure.energy import RaplMeter, energy_meter
from gnnperf.measure.machine import machine_record, remember_machine
from gnnperf.measure.quietness import Quietness, QuietnessWatch, combined
from gnnperf.measure.this_device import recognised_device


def test_the_machine_is_described_once(tmp_path):
    table = tmp_path / "mine.csv"
    key = remember_machine(table)
    assert remember_machine(table) == key
    known = json.loads((tmp_path / "mine.machines.json").read_text())
    assert list(known) == [key]
    record = known[key]
    assert record["processor"] and record["threads"] >= 1 and record["versions"]["onnxruntime"]
    assert record == json.loads(json.dumps(machine_record()))


def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_own_work_does_not_count_as_noise_but_that_of_others_does(monkeypatch):
    """Seconds of processors as the system would count them: ours alone, then ours and a neighbour's."""
    watch = QuietnessWatch()
    for others_s, quiet in ((0.0, True), (0.9, False)):
        counts = iter([(10.0, 100.0, 50.0), (11.0, 101.0 + others_s, 51.0)])
        monkeypatch.setattr(watch, "_counters", lambda counts=counts: next(counts))
        watch.start()
        found = watch.stop()
        assert found.quiet is quiet
        assert ("0.88 of" in found.note) is not quiet


def test_a_busy_neighbour_is_seen():
    code = "import time\nend = time.time() + 20\nwhile time.time() < end: pass"
    with subprocess.Popen([sys.executable, "-c", code]) as neighbour:
        try:
            watch = QuietnessWatch()
            used = psutil.Process(neighbour.pid)
            begin = sum(used.cpu_times()[:2])
            watch.start()
            while sum(used.cpu_times()[:2]) - begin < 0.3:  # however long that takes on a loaded machine
                time.sleep(0.05)
            _, all_s, own_s = (now - then for now, then in zip(watch._counters(), watch._begin, strict=True))
            assert all_s - own_s > 0.2
        finally:
            neighbour.kill()


def test_heat_is_noticed(tmp_path, monkeypatch):
    count = tmp_path / "cpu0/thermal_throttle/core_throttle_count"
    count.parent.mkdir(parents=True)
    count.write_text("5")
    counted = partial(quietness._throttle_count, tmp_path)
    monkeypatch.setattr(quietness, "_throttle_count", counted)
    watch = QuietnessWatch()
    monkeypatch.setattr(watch, "_others", lambda: Quietness(True))
    assert watch.stop() == Quietness(True)
    count.write_text("6")
    assert not watch.stop().quiet and "too hot" in watch.stop().note


def test_notes_are_joined():
    assert combined(Quietness(True), Quietness(True)) == Quietness(True, "")
    assert combined(Quietness(False, "a"), Quietness(True), Quietness(False, "b")) == Quietness(False, "a; b")


@pytest.fixture
def rapl(tmp_path):
    for name, uj in (("intel-rapl:0", 1_000), ("intel-rapl:1", 9_000), ("intel-rapl:0:0", 5)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "energy_uj").write_text(str(uj))
        (tmp_path / name / "max_energy_range_uj").write_text("10000")
    return tmp_path


def test_energy_of_all_packages_also_when_a_counter_wraps(rapl):
    meter = RaplMeter(rapl)
    (rapl / "intel-rapl:0/energy_uj").write_text("3000")
    (rapl / "intel-rapl:1/energy_uj").write_text("500")
    (rapl / "intel-rapl:0:0/energy_uj").write_text("9999")  # a part of the first package
    assert meter.stop_mj() == pytest.approx((2_000 + 1_500) / 1e3)


def test_no_counters_no_meter(tmp_path):
    with pytest.raises(OSError):
        RaplMeter(tmp_path)
    assert energy_meter(on_gpu=True) is None or energy_meter(on_gpu=True).stop_mj() >= 0


@pytest.mark.parametrize(
    ("processor", "slug"),
    [
        ("Intel(R) Xeon(R) Gold 6226 CPU @ 2.70GHz", "xeon-gold-6226"),
        ("Intel(R) Core(TM) i7-7700K CPU @ 4.20GHz", "i7-7700k"),
        ("Some Processor", ""),
    ],
)
def test_known_processors_are_recognised(monkeypatch, processor, slug):
    monkeypatch.setattr("gnnperf.measure.this_device.processor_name", lambda: processor)
    assert recognised_device(on_gpu=False) == slug
