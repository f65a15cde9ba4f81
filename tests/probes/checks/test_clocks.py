import pytest

from probes.checks.clocks import HARDWARE, SOFTWARE, ClocksProbe
from probes.live.nvml import EVENT_REASONS
from tests.probes.played import checks_of


def moments(before, during, after):
    return {"before": before, "during": during, "after": after}


def test_a_card_that_keeps_its_clocks(tmp_path):
    found = checks_of(ClocksProbe(), tmp_path)
    assert {check.verdict for check in found.values()} == {"pass"}
    assert found["temperature"].value == 45


def test_the_reasons_are_nvmls():
    assert set(HARDWARE) | set(SOFTWARE) < set(EVENT_REASONS.values())


@pytest.mark.parametrize("moment", ["before", "during", "after"])
@pytest.mark.parametrize(("reason", "verdict"), [*((r, "fail") for r in HARDWARE), *((r, "warn") for r in SOFTWARE)])
def test_a_reason_counts_whenever_it_is_there(tmp_path, moment, reason, verdict):
    reasons = moments(["idle"], [], ["idle"])
    reasons[moment] = ["idle", reason]
    check = checks_of(ClocksProbe(), tmp_path, nvml={"event_reasons": reasons})["clock-slowdown"]
    assert check.verdict == verdict
    assert check.value == f"{reason} {moment} the load"


@pytest.mark.parametrize("reason", ["idle", "application-clocks", "sync-boost", "display-clock"])
def test_other_reasons_are_nobodys_fault(tmp_path, reason):
    check = checks_of(ClocksProbe(), tmp_path, nvml={"event_reasons": [reason]})["clock-slowdown"]
    assert check.verdict == "pass"


def test_the_clock_under_load_counts(tmp_path):
    clocks = moments(1.98e9, 1.2e9, 1.98e9)
    check = checks_of(ClocksProbe(), tmp_path, nvml={"sm_clock_hz": clocks})["sm-clock"]
    assert check.verdict == "warn"
    assert check.value == pytest.approx(1.2 / 1.98)


def test_a_cap_below_the_default(tmp_path):
    check = checks_of(ClocksProbe(), tmp_path, nvml={"power_limit_w": 350})["power-cap"]
    assert (check.value, check.verdict) == (0.5, "warn")


def test_without_a_gpu_what_needs_no_load_is_told(tmp_path):
    found = checks_of(ClocksProbe(), tmp_path, gpu={"raises": "no CuPy"}, nvml={"persistence": False})
    assert {name: check.verdict for name, check in found.items()} == {
        "clock-slowdown": "unknown",
        "sm-clock": "unknown",
        "temperature": "unknown",
        "power-cap": "pass",
        "persistence": "warn",
    }


@pytest.mark.parametrize(
    ("field", "check"),
    [
        ("sm_clock_hz", "sm-clock"),
        ("sm_clock_max_hz", "sm-clock"),
        ("temperature_c", "temperature"),
        ("power_limit_default_w", "power-cap"),
        ("persistence", "persistence"),
    ],
)
def test_each_reading_fails_by_itself(tmp_path, field, check):
    found = checks_of(ClocksProbe(), tmp_path, nvml={field: {"raises": "Not Supported"}})
    assert {name for name, made in found.items() if made.verdict == "unknown"} == {check}
    assert field in found[check].why
