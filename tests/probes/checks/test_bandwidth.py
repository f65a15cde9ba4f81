"""The triad, really computed, as a share of a known peak."""

from dataclasses import replace

import pytest

from probes.checks import bandwidth
from probes.checks.bandwidth import TriadProbe
from tests.probes.emulated_cuda import EmulatedCuda, Times, run

pytestmark = pytest.mark.usefixtures("on_emulator")

PEAK = 2 * 3e9 * 4096 / 8
BYTES = 3 * 2**14


@pytest.fixture(autouse=True)
def smaller(monkeypatch):
    """48 KiB in place of what is over a GiB."""
    assert bandwidth.TRIAD_BYTES >= 2**30
    monkeypatch.setattr(bandwidth, "TRIAD_BYTES", BYTES)


@pytest.mark.parametrize(("share", "verdict"), [(0.91, "pass"), (0.7, "warn"), (0.5, "fail")])
def test_the_share_is_right_to_one_percent(share, verdict):
    emulated = EmulatedCuda(Times(kernel=BYTES / (share * PEAK), launch=0.0, wait=0.0))
    found = run(TriadProbe(), emulated)
    assert found["triad-share"].value == pytest.approx(share, rel=0.01)
    assert found["triad-share"].verdict == verdict
    assert found["triad"].value == pytest.approx(share * PEAK / 1e9, rel=0.01)
    assert emulated.device.ledger.entry.launches == 1 + bandwidth.REPEATS


def test_without_a_peak_the_rate_is_told_and_the_share_is_unknown():
    emulated = EmulatedCuda(Times(kernel=1e-3))
    gpu = emulated.open()
    gpu.model = replace(gpu.model, memory_peak_bytes_s=None)
    emulated.open = lambda: gpu
    found = run(TriadProbe(), emulated)
    assert found["triad-share"].verdict == "unknown"
    assert found["triad"].value > 0
