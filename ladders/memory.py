"""How much resident memory a piece of work needs on top of what was there. May import psutil only."""

from __future__ import annotations

import ctypes
import re
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
"""Writing 5 to clear_refs sets VmHWM back to VmRSS (proc(5))."""

SAMPLE_S = 0.005


class PeakMemory:
    """Context manager: peak resident bytes inside it, over those at its start.

    The kernel's own high-water mark is exact and costs nothing; where it cannot be reset (some containers), a thread
    samples every 5 ms instead and may miss a short peak.

    Attributes
    ----------
    over_resident_bytes : int
        Set at the end.
    """

    over_resident_bytes: int = 0

    def __enter__(self) -> Self:
        _trim_heap()
        self._sampler = None if _reset_peak() else _Sampler()
        self._before = psutil.Process().memory_info().rss
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        peak = self._sampler.stop() if self._sampler else _kernel_peak()
        self.over_resident_bytes = max(0, peak - self._before)


class _Sampler:
    def __init__(self) -> None:
        self._process = psutil.Process()
        self._peak = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._done.wait(SAMPLE_S):
            self._peak = max(self._peak, self._process.memory_info().rss)

    def stop(self) -> int:
        self._done.set()
        self._thread.join()
        return max(self._peak, self._process.memory_info().rss)


def _trim_heap() -> None:
    """Give freed memory back to the kernel (glibc): work that only reuses it would seem to need none."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))


def _reset_peak() -> bool:
    try:
        _CLEAR.write_text(_RESET_PEAK)
        return _kernel_peak() > 0
    except (OSError, TypeError):
        return False


def _kernel_peak() -> int:
    """VmHWM in bytes."""
    return int(re.search(r"^VmHWM:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)[1]) * 1024
