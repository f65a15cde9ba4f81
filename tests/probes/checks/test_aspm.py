import pytest

from probes.checks.aspm import POLICY, STATES, AspmProbe
from tests.probes.played import CARD, PORT, checks_of

OFF = {f"{CARD}/link/l1_aspm": None}


def test_a_link_that_never_sleeps(tmp_path):
    found = checks_of(AspmProbe(), tmp_path)
    assert [check.verdict for check in found.values()] == ["pass", "pass"]


@pytest.mark.parametrize("state", STATES)
def test_a_state_that_is_on(tmp_path, state):
    check = checks_of(AspmProbe(), tmp_path, files={f"{CARD}/link/{state}": "1\n"})["aspm"]
    assert (check.value, check.verdict) == (state, "warn")


@pytest.mark.parametrize(
    ("policy", "verdict"),
    [
        ("default [performance] powersave powersupersave\n", "pass"),
        ("default performance [powersave] powersupersave\n", "warn"),
        ("default performance powersave [powersupersave]\n", "warn"),
        ("[default] performance powersave powersupersave\n", "unknown"),
        ("nonsense\n", "unknown"),
        (None, "unknown"),
    ],
)
def test_the_policy_where_no_state_is_shown(tmp_path, policy, verdict):
    assert checks_of(AspmProbe(), tmp_path, files={**OFF, POLICY: policy})["aspm"].verdict == verdict


@pytest.mark.parametrize(
    ("files", "share"),
    [
        ({f"{PORT}/max_link_speed": "16.0 GT/s PCIe\n"}, 0.5),
        ({f"{PORT}/current_link_width": "8\n"}, 0.5),
        ({f"{PORT}/max_link_speed": "64.0 GT/s PCIe\n"}, 2.0),
    ],
)
def test_the_narrowest_port_counts(tmp_path, files, share):
    check = checks_of(AspmProbe(), tmp_path, files=files)["upstream-link"]
    assert (check.value, check.verdict) == (share, "warn" if share < 1 else "pass")


@pytest.mark.parametrize(
    "files",
    [
        {f"{PORT}/max_link_speed": "Unknown\n"},
        {f"{PORT}/current_link_width": "0\n"},
        {f"{PORT}/current_link_width": "\n"},
        {f"{CARD}/max_link_width": None},
    ],
)
def test_what_sysfs_does_not_tell_is_unknown(tmp_path, files):
    assert checks_of(AspmProbe(), tmp_path, files=files)["upstream-link"].verdict == "unknown"


def test_a_hidden_card_is_unknown(tmp_path):
    found = checks_of(AspmProbe(), tmp_path, files={"sys/bus/pci/devices/0000:3b:00.0": None})
    assert [check.verdict for check in found.values()] == ["unknown", "unknown"]
