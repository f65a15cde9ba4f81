import os
import time

import pytest

from ladders.device_memory import PeakDeviceMemory
from probes.parts import UnavailableError


class Card:
    """NVML of a card whose processes hold the bytes given, reading after reading; the last for ever."""

    def __init__(self, *readings):
        self.readings = list(readings)
        self.asked = 0

    def read(self, field):
        assert field == "processes"
        self.asked += 1
        found = self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]
        if isinstance(found, Exception):
            raise found
        return found


def mine(nbytes):
    return [{"pid": os.getpid(), "memory_bytes": nbytes}, {"pid": 1, "memory_bytes": 10**12}]


def peak(card, device="gpu", until=0):
    with PeakDeviceMemory(device, card) as memory:
        while card.asked < until:
            time.sleep(0.005)
    return memory.peak_bytes


def test_the_most_of_this_process_alone():
    assert peak(Card(mine(5), mine(900), mine(7)), until=3) == 900


@pytest.mark.parametrize(
    "reading", [[], [{"pid": 1, "memory_bytes": 9}], mine(None), UnavailableError("not permitted")]
)
def test_what_nvml_does_not_show_is_not_measured(reading):
    assert peak(Card(reading), until=2) is None


def test_a_reading_that_fails_loses_only_itself():
    assert peak(Card(mine(5), UnavailableError("busy"), mine(6)), until=3) == 6


def test_nothing_is_asked_on_a_cpu():
    card = Card(mine(5))
    assert peak(card, "cpu") is None
    assert card.asked == 0


def test_without_a_driver_nothing_is_measured_and_nothing_fails(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with PeakDeviceMemory("gpu") as memory:
        pass
    assert memory.peak_bytes is None
