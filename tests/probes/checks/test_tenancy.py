import os

import pytest

from probes.checks.tenancy import PAUSE_S, TRIES, TenancyProbe
from tests.probes.played import THRESHOLDS, checks_of, played


def verdicts(found):
    return {name: check.verdict for name, check in found.items()}


def test_a_card_of_ones_own(tmp_path):
    assert set(verdicts(checks_of(TenancyProbe(), tmp_path)).values()) == {"pass"}


def test_this_process_and_the_one_that_started_it_are_not_others(tmp_path):
    ours = [{"pid": pid, "memory_bytes": 1} for pid in (os.getpid(), os.getppid())]
    assert checks_of(TenancyProbe(), tmp_path, nvml={"processes": ours})["other-processes"].value == 0
    found = checks_of(TenancyProbe(), tmp_path, nvml={"processes": [*ours, {"pid": 1, "memory_bytes": None}]})
    assert (found["other-processes"].value, found["other-processes"].verdict) == (1, "fail")


@pytest.mark.parametrize(("share", "verdict"), [(0.0, "pass"), (0.02, "pass"), (0.05, "warn"), (0.5, "fail")])
def test_memory_in_use(tmp_path, share, verdict):
    fields = {"memory_used_bytes": int(share * 1000), "memory_total_bytes": 1000}
    assert checks_of(TenancyProbe(), tmp_path, nvml=fields)["gpu-memory-used"].verdict == verdict


def test_a_slice(tmp_path):
    assert checks_of(TenancyProbe(), tmp_path, nvml={"mig_mode": True})["mig"].verdict == "fail"


def test_a_card_that_stays_busy_is_asked_again_and_then_believed(tmp_path):
    with played(tmp_path, nvml={"busy": 0.9}) as parts:
        check = TenancyProbe().run(parts, THRESHOLDS)[-1]
        assert parts.clock.now() == pytest.approx((TRIES - 1) * PAUSE_S)
    assert (check.value, check.verdict) == (0.9, "fail")


def test_what_a_fit_before_us_left_fades(tmp_path):
    """NVML's utilisation looks back: the contender that has just ended is no neighbour."""
    with played(tmp_path, nvml={"busy": {"before": 0.9, "during": 0.9, "after": 0.0}}) as parts:
        parts.open_gpu().bind_triad(2**30)[0]()
        check = TenancyProbe().run(parts, THRESHOLDS)[-1]
    assert (check.value, check.verdict) == (0.0, "pass")


@pytest.mark.parametrize("field", ["mig_mode", "processes", "memory_used_bytes", "memory_total_bytes", "busy"])
def test_each_reading_fails_by_itself(tmp_path, field):
    found = checks_of(TenancyProbe(), tmp_path, nvml={field: {"raises": "Insufficient Permissions"}})
    assert sorted(verdicts(found).values()) == ["pass", "pass", "pass", "unknown"]


def test_without_nvml_all_is_unknown(tmp_path):
    assert set(verdicts(checks_of(TenancyProbe(), tmp_path, nvml={"raises": "no driver"})).values()) == {"unknown"}
