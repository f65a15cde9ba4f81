"""How much of the GPU's memory this process holds at most. May import pynvml and probes.

NVML is asked every 50 ms: the driver keeps no high-water mark a process could read.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import Self

from probes.live.nvml import open_nvml
from probes.parts import Nvml, UnavailableError

SAMPLE_S = 0.05


class PeakDeviceMemory:
    """Context manager: the most device memory that NVML books to this process inside it.

    Parameters
    ----------
    device : {"cpu", "gpu"}
        On a CPU nothing is asked.
    nvml : Nvml, optional
        This machine's, if not given.

    Attributes
    ----------
    peak_bytes : int or None
        None where NVML is missing or does not show this process, as in a container with process ids of its own.
    """

    def __init__(self, device: str, nvml: Nvml | None = None) -> None:
        self.peak_bytes: int | None = None
        self._asked = device == "gpu"
        self._nvml = nvml
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._asked and self._open():
            self._sample()
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._thread is not None:
            self._done.set()
            self._thread.join()
            self._sample()

    def _open(self) -> bool:
        try:
            self._nvml = self._nvml or open_nvml()
        except UnavailableError:
            return False
        return True

    def _run(self) -> None:
        while not self._done.wait(SAMPLE_S):
            self._sample()

    def _sample(self) -> None:
        try:
            held = [
                process["memory_bytes"] for process in self._nvml.read("processes") if process["pid"] == os.getpid()
            ]
        except UnavailableError:
            return
        if held and None not in held:
            self.peak_bytes = max(self.peak_bytes or 0, sum(held))
