from dataclasses import replace

import pytest

from ladders.sandwich import Observation, observe, why_invalid
from probes.cores import CpuTime, Throttling
from probes.thresholds import load_thresholds
from probes.verdict import decide

THRESHOLDS = load_thresholds()
GOOD = (THRESHOLDS.judge("sync-p50", 4.0), THRESHOLDS.judge("temperature", 60))


def seen(*checks, digest="abc", throttling=None, cpu_time=None):
    checks = checks or GOOD
    return Observation(checks, decide(checks, THRESHOLDS), {"digest": digest}, throttling, cpu_time)


def test_two_quiet_halves_leave_the_row_valid():
    warmer = seen(THRESHOLDS.judge("sync-p50", 4.4), THRESHOLDS.judge("temperature", 85))
    assert why_invalid(seen(), warmer, THRESHOLDS) is None


def test_another_host_is_another_row():
    assert why_invalid(seen(), seen(digest="xyz"), THRESHOLDS) == "the host's passport changed from abc to xyz"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_rejected_host_marks_the_row_with_its_reason(when):
    slow = seen(THRESHOLDS.judge("sync-p50", 300.0))
    halves = (slow, slow) if when == "before" else (seen(), slow)
    assert why_invalid(*halves, THRESHOLDS).startswith(f"rejected {when} the fit: sync-p50 300 us (")


def test_a_co_tenant_that_came_marks_the_row():
    guest = seen(*GOOD, THRESHOLDS.judge("other-processes", 1))
    assert "other-processes 1" in why_invalid(seen(), guest, THRESHOLDS)


@pytest.mark.parametrize(("before", "after"), [(4.0, 11.0), (11.0, 4.0)])
def test_a_drift_either_way_marks_the_row(before, after):
    reason = why_invalid(
        seen(THRESHOLDS.judge("sync-p50", before)), seen(THRESHOLDS.judge("sync-p50", after)), THRESHOLDS
    )
    assert reason == f"sync-p50 moved from {before:.4g} to {after:.4g} us around the fit"


def test_a_figure_that_went_missing_is_no_drift():
    assert why_invalid(seen(), seen(THRESHOLDS.unknown("sync-p50", "too slow"), GOOD[1]), THRESHOLDS) is None


def test_throttling_during_the_fit_marks_the_row():
    before, after = seen(throttling=Throttling(100, 50, 9.0)), seen(throttling=Throttling(200, 60, 9.5))
    assert why_invalid(before, after, THRESHOLDS).startswith("cpu-throttled-under-load 10 % of periods")
    calm = seen(throttling=Throttling(200, 51, 9.0))
    assert why_invalid(before, calm, THRESHOLDS) is None


def test_stolen_time_during_the_fit_marks_the_row():
    before, after = seen(cpu_time=CpuTime(1000, 100)), seen(cpu_time=CpuTime(2000, 200))
    assert why_invalid(before, after, THRESHOLDS).startswith("cpu-stolen-under-load 10 % of time")


def test_this_cpu_is_observed_in_this_process():
    found = observe("cpu", 1, THRESHOLDS)
    assert found.passport["digest"]
    assert found.passport["quick"]["verdict"] == found.judgement.decision
    assert {check.name for check in found.checks} >= {"cpuset", "load", "memory-available"}
    assert why_invalid(found, replace(found), THRESHOLDS) is None or found.judgement.decision == "reject"


def test_more_threads_than_cpus_are_told():
    found = observe("cpu", 100_000, THRESHOLDS)
    assert "100000 threads" in why_invalid(found, found, THRESHOLDS)
