"""Shared atomics a clock and multiprocessor, from a kernel that really makes them, in a known time."""

import pytest

from probes import kernels
from probes.checks.atomics import PATTERNS, AtomicsProbe
from probes.parts import UnavailableError
from tests.probes.emulated_cuda import EmulatedCuda, Times, run

pytestmark = pytest.mark.usefixtures("on_emulator")


@pytest.fixture(autouse=True)
def smaller(monkeypatch):
    monkeypatch.setattr(kernels, "ATOMICS_ROWS", 2)
    monkeypatch.setattr(kernels, "ATOMICS_BLOCKS_A_PROCESSOR", 1)


def test_the_rate_is_right_to_one_percent_though_every_launch_is_waited_for():
    """300 us of waiting are no part of it."""
    n_atomics = 2 * 512 * 2 * 24
    working = n_atomics / (3.0 * 1.5e9 * 2)
    found = run(AtomicsProbe(), EmulatedCuda(Times(kernel=working, wait=300e-6, event=0.0)))
    for pattern in PATTERNS:
        assert found[f"atomics-{pattern}"].value == pytest.approx(3.0, rel=0.01)
        assert found[f"atomics-{pattern}"].verdict == "pass"
    assert "random" not in found["atomics-one-bin"].why


def test_a_kernel_that_takes_no_time_tells_nothing():
    with pytest.raises(UnavailableError, match="no longer than an empty one"):
        run(AtomicsProbe(), EmulatedCuda(Times(kernel=0.0)))
