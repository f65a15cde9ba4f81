"""The pool's threshold is set, read and restored, wherever the probe is interrupted; and what 0 costs is seen."""

import contextlib
import sys

import pytest

from probes.checks import mempool
from probes.checks.mempool import KEEP_ALL, MempoolProbe
from probes.parts import UnavailableError
from probes.thresholds import load_thresholds
from tests.probes.emulated_cuda import EmulatedCuda, Times, parts_of, run

pytestmark = pytest.mark.usefixtures("on_emulator")

BEFORE = 12_345_678


def with_threshold(times=None):
    emulated = EmulatedCuda(times)
    emulated.threshold = BEFORE
    return emulated


@pytest.mark.parametrize(("give_back", "verdict"), [(5e-6, "pass"), (400e-6, "warn"), (0.05, "warn")])
def test_both_costs_and_their_ratio(give_back, verdict):
    emulated = with_threshold(Times(give_back=give_back))
    found = run(MempoolProbe(), emulated)
    assert found["mempool-at-zero"].value == pytest.approx((5e-6 + give_back) * 1e6, rel=0.01)
    assert found["mempool-kept"].value == pytest.approx(5, rel=0.01)
    assert found["mempool-ratio"].value == pytest.approx((5e-6 + give_back) / 5e-6, rel=0.01)
    assert found["mempool-ratio"].verdict == verdict
    assert found["mempool-threshold"].value is True
    assert f"{BEFORE:,}" in found["mempool-threshold"].why
    assert emulated.threshold == BEFORE


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_the_threshold_is_restored_whichever_call_is_interrupted(interrupt):
    """Each call of the probe in turn, the one that restores included."""
    undisturbed = with_threshold()
    run(MempoolProbe(), undisturbed)
    n_calls = len(undisturbed.calls)
    assert n_calls > 100
    for number in range(n_calls):
        emulated = with_threshold()
        emulated.interrupt, emulated.interrupt_at = interrupt, number
        with pytest.raises((interrupt, UnavailableError)):
            run(MempoolProbe(), emulated)
        assert emulated.threshold == BEFORE, f"after {interrupt.__name__} in call {number}, {emulated.calls[-1]}"


def test_the_threshold_is_restored_on_whichever_line_ctrl_c_comes(monkeypatch):
    """Between calls too: every line of the check, of the CuPy part and of what leads out of a ``with``."""
    monkeypatch.setattr(mempool, "ROUNDS", 1)
    monkeypatch.setattr(mempool, "REPEATS", 1)
    watched = {mempool.__file__, sys.modules["probes.live.cuda"].__file__, contextlib.__file__}

    def run_until(line):
        emulated = with_threshold()
        parts = parts_of(emulated)
        lines = 0

        def trace(frame, event, _):
            nonlocal lines
            if event == "line" and frame.f_code.co_filename in watched:
                lines += 1
                if lines == line:
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            MempoolProbe().run(parts, load_thresholds())
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        return lines, emulated.threshold

    n_lines, _ = run_until(None)
    assert n_lines > 100
    for line in range(1, n_lines + 1):
        assert run_until(line) == (line, BEFORE)


def test_a_pool_that_does_not_obey_fails_and_is_not_measured():
    emulated = with_threshold()
    emulated._threshold_becomes = lambda pool, attribute, value: None
    found = run(MempoolProbe(), emulated)
    assert found["mempool-threshold"].verdict == "fail"
    assert found["mempool-threshold"].value is False
    assert f"{BEFORE:,}" in found["mempool-threshold"].why
    assert {found[name].verdict for name in MempoolProbe.names[1:]} == {"unknown"}


def test_a_driver_without_pools_is_a_reason():
    emulated = with_threshold()
    gpu = emulated.open()
    gpu._runtime.deviceGetAttribute = lambda value, _: 0
    emulated.open = lambda: gpu
    with pytest.raises(UnavailableError, match="no stream-ordered memory pool"):
        run(MempoolProbe(), emulated)


def test_the_maximum_is_what_the_engine_sets():
    from engine.device.cuda import _KeptPools

    assert _KeptPools.KEEP_ALL == KEEP_ALL
