import time

import numpy as np
import pytest

from ladders import memory
from ladders.memory import PeakMemory

MEGABYTE = 1 << 20


def grow_and_shrink():
    block = np.ones(64 * MEGABYTE, np.uint8)
    time.sleep(0.1)  # long enough for the sampling thread, which needs the interpreter's lock
    return int(block[-1])


@pytest.mark.parametrize("way", ["kernel", "sampled"])
def test_sees_a_peak_that_is_gone_at_the_end(way, monkeypatch, tmp_path):
    if way == "sampled":
        monkeypatch.setattr(memory, "_CLEAR", tmp_path / "no" / "such")
    with PeakMemory() as peak:
        grow_and_shrink()
    assert 60 * MEGABYTE < peak.over_resident_bytes < 90 * MEGABYTE


def test_what_was_resident_before_does_not_count():
    resident = np.ones(64 * MEGABYTE, np.uint8)
    with PeakMemory() as peak:
        total = int(resident[:1000].sum())
    assert total == 1000
    assert peak.over_resident_bytes < 8 * MEGABYTE
