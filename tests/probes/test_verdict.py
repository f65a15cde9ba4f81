import pytest

from probes.thresholds import load_thresholds
from probes.verdict import decide, reason_of, value_of

THRESHOLDS = load_thresholds()


def test_nothing_wrong_accepts():
    judged = decide([THRESHOLDS.judge("cpuset", 3), THRESHOLDS.unknown("cpu-governor", "hidden")], THRESHOLDS)
    assert (judged.decision, judged.reasons, judged.exit_code) == ("accept", (), 0)


def test_a_warning_accepts_with_it():
    judged = decide([THRESHOLDS.judge("cpuset", 3), THRESHOLDS.judge("load", 60)], THRESHOLDS)
    assert (judged.decision, judged.exit_code) == ("accept with warnings", 0)
    assert judged.reasons[0].startswith("load 60 % of CPUs (warn above 25): ")


def test_reasons_stand_worst_first_and_then_by_weight():
    checks = [
        THRESHOLDS.unknown("sync-p50", "no CuPy"),
        THRESHOLDS.judge("load", 60),
        THRESHOLDS.judge("cpuset", -1),
        THRESHOLDS.judge("cpu-throttled", 2),
        THRESHOLDS.judge("cpu-quota", -2),
    ]
    judged = decide(checks, THRESHOLDS)
    assert (judged.decision, judged.exit_code) == ("reject", 4)
    named = [reason.split()[0] for reason in judged.reasons]
    assert named == ["cpu-quota", "cpuset", "cpu-throttled", "load", "sync-p50"]
    assert decide(checks[::-1], THRESHOLDS) == judged


def test_a_check_that_matters_and_could_not_be_made_is_a_warning():
    judged = decide([THRESHOLDS.unknown("sync-p50", "took longer than 5 s")], THRESHOLDS)
    assert judged.decision == "accept with warnings"
    assert judged.reasons == ("sync-p50 is unknown: took longer than 5 s",)


def test_a_gpu_that_nobody_could_open_is_rejected():
    judged = decide([THRESHOLDS.unknown("gpu", "opening the GPU: took longer than 10 s")], THRESHOLDS)
    assert (judged.decision, judged.exit_code) == ("reject", 4)


@pytest.mark.parametrize(
    ("check", "shown"),
    [
        (THRESHOLDS.judge("cpu-steal", 0.0123456), "0.01235 % of time"),
        (THRESHOLDS.state("gpu-memory", 85_899_345_920, "pass", ""), "85,899,345,920 bytes"),
        (THRESHOLDS.state("cpu-quota", "unlimited", "pass", ""), "unlimited"),
        (THRESHOLDS.state("mig", False, "pass", ""), "no"),
        (THRESHOLDS.state("gpu", None, "fail", ""), ""),
    ],
)
def test_values_are_shown_with_their_unit(check, shown):
    assert value_of(check) == shown


def test_a_reason_without_a_value_has_no_gaps():
    assert reason_of(THRESHOLDS.state("gpu", None, "fail", "no driver")) == "gpu: no driver"
