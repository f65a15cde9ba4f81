"""Copies at known rates, as a share of known links."""

import pytest

from probes.checks import copies
from probes.checks.copies import LargeCopyProbe, SmallCopyProbe
from probes.parts import UnavailableError
from tests.probes.emulated_cuda import EmulatedCuda, Times, run

pytestmark = pytest.mark.usefixtures("on_emulator")

GEN5_X16 = {"link_generation_max": 5, "link_width": 16}


@pytest.fixture(autouse=True)
def smaller(monkeypatch):
    """One MiB: what is made up here is time, and memory is real."""
    monkeypatch.setattr(copies, "LARGE_BYTES", 2**20)


@pytest.mark.parametrize(("wait", "verdict"), [(8e-6, "pass"), (45e-6, "warn")])
def test_four_bytes_home(wait, verdict):
    found = run(SmallCopyProbe(), EmulatedCuda(Times(wait=wait), 1e-6))
    assert found["d2h-4-bytes-pinned"].value == pytest.approx(wait * 1e6, rel=0.01)
    assert found["d2h-4-bytes-pinned"].verdict == verdict
    assert found["d2h-4-bytes-pageable"].verdict == "pass"


@pytest.mark.parametrize(
    ("rate", "verdict"),
    [(55e9, "pass"), (45e9, "warn"), (23.7e9, "warn"), (15e9, "fail")],  # of 63.0 GB/s
)
def test_rates_are_held_against_the_link(rate, verdict):
    found = run(LargeCopyProbe(), EmulatedCuda(Times(up_bytes_s=rate, down_bytes_s=60e9, wait=0.0)), nvml=GEN5_X16)
    for memory in ("pinned", "pageable"):
        assert found[f"h2d-{memory}"].value == pytest.approx(rate / 1e9, rel=0.01)
    assert found["h2d-share"].value == pytest.approx(rate / 63.008e9, rel=0.01)
    assert found["h2d-share"].verdict == verdict
    assert "PCIe 5 x16" in found["h2d-share"].why
    assert found["d2h-share"].verdict == "pass"


def test_a_link_that_nobody_tells_leaves_the_rate_and_an_unknown(tmp_path):
    found = run(LargeCopyProbe(), EmulatedCuda(), root=tmp_path)
    assert found["h2d-share"].verdict == found["d2h-share"].verdict == "unknown"
    assert "NVML is absent" in found["h2d-share"].why
    assert found["h2d-pinned"].verdict == "pass"


def test_pinned_memory_that_cannot_be_had_hides_no_other():
    emulated = EmulatedCuda()
    opened = emulated.open()
    bind = opened.bind_copy

    def refuse(direction, nbytes, memory):
        if memory == "pinned":
            raise UnavailableError("no page can be locked here: ulimit -l")
        return bind(direction, nbytes, memory)

    opened.bind_copy = refuse
    emulated.open = lambda: opened
    found = run(LargeCopyProbe(), emulated, nvml=GEN5_X16)
    assert found["h2d-pinned"].verdict == found["h2d-share"].verdict == "unknown"
    assert "ulimit" in found["h2d-share"].why
    assert found["h2d-pageable"].value > 0


def test_a_very_slow_link_is_not_measured_thrice():
    emulated = EmulatedCuda(Times(up_bytes_s=2**20 / 1.5, down_bytes_s=1e9))
    run(LargeCopyProbe(), emulated, nvml=GEN5_X16)
    assert emulated.clock.seconds < 2 * 2 * 1.6
