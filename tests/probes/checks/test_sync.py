"""Waits of known length, really launched, under the clock that knows it."""

from dataclasses import replace
from itertools import cycle

import pytest

from probes.checks.sync import SCHEDULES, IdleSyncProbe, ScheduleProbe, SyncProbe
from probes.parts import UnavailableError
from probes.thresholds import load_thresholds
from tests.probes.emulated_cuda import EmulatedCuda, Times, parts_of, run

pytestmark = pytest.mark.usefixtures("on_emulator")


@pytest.mark.parametrize(
    ("wait", "verdict"), [(2e-6, "pass"), (12.9e-6, "pass"), (13.2e-6, "warn"), (47.8e-6, "warn"), (300e-6, "fail")]
)
@pytest.mark.parametrize("cost_s", [0.0, 1e-6])
def test_the_median_is_right_to_one_percent_and_judged(wait, verdict, cost_s):
    found = run(SyncProbe(), EmulatedCuda(Times(wait=wait), cost_s))
    assert found["sync-p50"].value == pytest.approx((wait + 2e-6) * 1e6, rel=0.01)
    assert found["sync-p50"].verdict == verdict
    assert found["sync-p99-ratio"].value == pytest.approx(1.0, rel=0.01)
    assert found["sync-p99-ratio"].verdict == "pass"


def test_a_slow_one_in_thirty_is_the_99th_percentile():
    waits = cycle([8e-6] * 29 + [148e-6])
    found = run(SyncProbe(), EmulatedCuda(Times(wait=lambda: next(waits))))
    assert found["sync-p50"].value == pytest.approx(10, rel=0.01)
    assert found["sync-p99"].value == pytest.approx(150, rel=0.01)
    assert found["sync-p99-ratio"].verdict == "warn"
    assert "150.0 us (p99)" in found["sync-p99-ratio"].why


def test_kernels_are_really_launched():
    emulated = EmulatedCuda()
    run(SyncProbe(), emulated)
    assert emulated.device.ledger.entry.launches == emulated.calls.count("_wait") >= 5000


@pytest.mark.parametrize(("asleep", "verdict"), [(5e-6, "pass"), (60e-6, "warn")])
def test_what_falls_asleep_is_told(asleep, verdict):
    emulated = EmulatedCuda()
    slept = {"until": -1.0}
    sleep = emulated.clock.sleep

    def nap(seconds):
        sleep(seconds)
        slept["until"] = emulated.clock.seconds + 1e-5

    emulated.clock.sleep = nap
    emulated.times.wait = lambda: asleep if emulated.clock.seconds < slept["until"] else 5e-6
    found = run(IdleSyncProbe(), emulated)
    assert found["sync-idle-p50"].value == pytest.approx((asleep + 2e-6) * 1e6, rel=0.01)
    assert found["sync-idle-ratio"].value == pytest.approx((asleep + 2e-6) / 7e-6, rel=0.02)
    assert found["sync-idle-ratio"].verdict == verdict


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_each_flag_is_a_probe_of_its_own(schedule):
    probe = ScheduleProbe(schedule)
    found = run(probe, EmulatedCuda(Times(wait=20e-6)))
    assert probe.schedule == schedule
    assert found[f"sync-p50-{schedule}"].value == pytest.approx(22, rel=0.01)
    assert schedule in found[f"sync-p50-{schedule}"].why


def test_less_than_the_clock_can_tell_is_unknown_and_not_a_pass():
    found = run(SyncProbe(), EmulatedCuda(Times(launch=0.0, wait=0.0)))
    assert found["sync-p99-ratio"].verdict == "unknown"


def test_a_gpu_that_cannot_be_had_is_the_reason():
    def refuse():
        raise UnavailableError("no driver")

    with pytest.raises(UnavailableError, match="no driver"):
        SyncProbe().run(replace(parts_of(EmulatedCuda()), open_gpu=refuse), load_thresholds())
