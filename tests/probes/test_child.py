import pytest

from probes.child import Once, Order
from probes.parts import UnavailableError


class Counted:
    def __init__(self, error=None):
        self.calls, self.closed, self._error = 0, 0, error

    def open(self):
        self.calls += 1
        if self._error is not None:
            raise self._error
        return self

    def close(self):
        self.closed += 1


def test_a_part_is_opened_once_and_closed_once():
    part = Counted()
    once = Once(part.open)
    assert once() is once() is part
    once.close()
    assert (part.calls, part.closed) == (1, 1)


def test_a_refusal_is_kept():
    part = Counted(UnavailableError("no driver"))
    once = Once(part.open)
    for _ in range(3):
        with pytest.raises(UnavailableError, match="no driver"):
            once()
    once.close()
    assert (part.calls, part.closed) == (1, 0)


def test_whatever_a_driver_raises_is_a_refusal():
    once = Once(Counted(OSError("libcuda.so.1: cannot open")).open)
    for _ in range(2):
        with pytest.raises(UnavailableError, match=r"OSError: libcuda\.so\.1"):
            once()


def test_a_part_never_opened_is_not_closed():
    part = Counted()
    Once(part.open).close()
    assert (part.calls, part.closed) == (0, 0)


def test_an_order_is_strict():
    fields = {"probes": ["host"], "schedule": "auto", "threads": 1, "thresholds": None, "replay": None, "parent": 1}
    assert Order(**fields).probes == ["host"]
    for wrong in ({"schedule": "sleepy"}, {"more": 1}, {"probes": "host"}):
        with pytest.raises(ValueError, match="validation error"):
            Order(**{**fields, **wrong})
