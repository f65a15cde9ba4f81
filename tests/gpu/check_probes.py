"""What of the probes only a GPU can show: run by `make gpu-check`. Its name keeps it out of `make test`."""

import subprocess
import sys

import pytest

from probes import kernels
from probes.checks.mempool import MempoolProbe
from probes.live.cuda import open_gpu
from probes.live.parts import live_parts
from probes.probe import PROBES, outcome
from probes.thresholds import load_thresholds


@pytest.fixture(scope="module")
def gpu():
    opened = open_gpu()
    yield opened
    opened.close()


@pytest.mark.parametrize("pattern", kernels.PATTERN_MASKS)
def test_the_atomics_leave_the_sums_that_the_emulator_leaves(gpu, pattern, monkeypatch):
    """By rows of 1 to 1,024 a thread in each of 12 features: no add is lost, no word overflows."""
    import cupy

    taken = []
    monkeypatch.setattr(cupy.cuda, "Memory", Remembered(cupy.cuda.Memory, taken))
    call, n_atomics = gpu.bind_atomics(pattern)
    call()
    memory = cupy.cuda.MemoryPointer(taken[0], 0)
    g, h = cupy.ndarray((2, 12, 256), "int64", memory).get()
    threads = gpu.model.n_processors * kernels.ATOMICS_BLOCKS_A_PROCESSOR * kernels.ATOMICS_BLOCK
    assert (g.sum(axis=1) == 0).all()
    assert (h.sum(axis=1) == threads * kernels.ATOMICS_ROWS * (kernels.ATOMICS_ROWS + 1) // 2).all()
    assert n_atomics == threads * kernels.ATOMICS_ROWS * kernels.ATOMICS_A_ROW


@pytest.mark.parametrize("schedule", ["spin", "yield", "blocking"])
def test_each_schedule_flag_holds(schedule):
    """`open_gpu` reads the context's flag back and raises where it is another."""
    script = (
        f"from probes.live.cuda import open_gpu; launch, wait = open_gpu({schedule!r}).bind_empty(); launch(); wait()"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_probe_of_the_gpu_makes_its_checks():
    parts, thresholds = live_parts("auto", 1), load_thresholds()
    for probe in PROBES:
        if probe.needs == "gpu" and probe.schedule == "auto":
            for check in outcome(probe, parts, thresholds):
                print(check.name, check.value, check.unit, check.verdict, check.why)
                assert "the probe failed" not in check.why


def test_the_pool_is_as_before(gpu):
    before = gpu.pool_threshold()
    checks = outcome(MempoolProbe(), live_parts("auto", 1), load_thresholds())
    assert {check.verdict for check in checks} <= {"pass", "warn"}
    assert gpu.pool_threshold() == before


class Remembered:
    """A class whose every object is kept in a list."""

    def __init__(self, made, kept):
        self._made, self._kept = made, kept

    def __call__(self, *arguments):
        self._kept.append(self._made(*arguments))
        return self._kept[-1]
