import pytest

from probes.checks.memory_health import COUNTERS, FLAGS, XID_FAIL, XID_WARN, MemoryHealthProbe, XidProbe
from tests.probes.played import checks_of

LOST = {"raises": "GPU is lost"}


def logged(*lines):
    return {"dev/kmsg": "".join(f"3,{i},1,-;{line}\n" for i, line in enumerate(lines))}


def xid(tmp_path, *lines, **differences):
    return checks_of(XidProbe(), tmp_path, files=logged(*lines), **differences)["xid"]


def test_a_sound_card(tmp_path):
    found = checks_of(MemoryHealthProbe(), tmp_path)
    # A card remaps rows or retires pages, never both.
    kinds = {name: check.verdict for name, check in found.items()}
    assert {name for name, verdict in kinds.items() if verdict == "unknown"} == {
        "page-retirement-pending",
        "pages-retired",
    }
    assert set(kinds.values()) == {"pass", "unknown"}


@pytest.mark.parametrize(("name", "field", "raised"), [(name, what[0], what[1]) for name, what in FLAGS.items()])
def test_a_flag_that_is_raised(tmp_path, name, field, raised):
    check = checks_of(MemoryHealthProbe(), tmp_path, nvml={field: True})[name]
    assert (check.value, check.verdict) == (True, raised)


@pytest.mark.parametrize(
    ("name", "value", "verdict"),
    [
        ("ecc-uncorrected", 1, "fail"),
        ("ecc-aggregate", 1, "warn"),
        ("rows-remapped", 511, "pass"),
        ("rows-remapped", 512, "warn"),
        ("pages-retired", 15, "warn"),
        ("pages-retired", 63, "fail"),
    ],
)
def test_a_counter_is_judged(tmp_path, name, value, verdict):
    check = checks_of(MemoryHealthProbe(), tmp_path, nvml={COUNTERS[name][0]: value})[name]
    assert (check.value, check.verdict) == (value, verdict)


def test_no_xid(tmp_path):
    assert xid(tmp_path, "usb 1-1: new device").verdict == "pass"


@pytest.mark.parametrize("code", sorted(XID_FAIL | XID_WARN | {13, 45}))
def test_a_code_is_judged_as_dcgm_does(tmp_path, code):
    check = xid(tmp_path, f"NVRM: Xid (PCI:0000:3b:00): {code}, pid=1, name=python")
    expected = "fail" if code in XID_FAIL else "warn" if code in XID_WARN else "pass"
    assert (check.value, check.verdict) == (code, expected)


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:3B:00 GPU-I:05): 79, pid='<unknown>', name=<unknown>",
        "NVRM: Xid (0000:3b:00): 79, CMDre 00000000",
    ],
)
def test_every_form_of_the_line(tmp_path, line):
    assert xid(tmp_path, line).verdict == "fail"


def test_another_cards_xid_is_not_ours(tmp_path):
    assert xid(tmp_path, "NVRM: Xid (PCI:0000:af:00): 79, gone").verdict == "pass"


def test_a_lost_card_answers_no_more_so_any_counts(tmp_path):
    assert xid(tmp_path, "NVRM: Xid (PCI:0000:af:00): 79, gone", nvml=LOST).verdict == "fail"
    assert xid(tmp_path, "NVRM: Xid (PCI:0000:af:00): 79, gone", nvml={"pci_bus_id": LOST}).verdict == "fail"


def test_the_worst_is_named_and_all_are_listed(tmp_path):
    lines = [f"NVRM: Xid (PCI:0000:3b:00): {code}, x" for code in (31, 31, 13, 79)]
    check = xid(tmp_path, *lines)
    assert check.value == 79
    assert "Xid 13 (1x), Xid 31 (2x), Xid 79 (1x)" in check.why


def test_a_hidden_log_is_unknown(tmp_path):
    check = checks_of(XidProbe(), tmp_path, files={"dev/kmsg": None})["xid"]
    assert check.verdict == "unknown"
    assert "kernel log" in check.why
