"""The real parts of this machine; GPU and NVML are imported when first opened. May import probes and psutil."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import Any

from probes import cores
from probes.live.host_triad import bind_host_triad
from probes.live.libraries import installed_libraries
from probes.parts import Gpu, Nvml, Parts, Schedule, UnavailableError


class MonotonicClock:
    """The machine's monotonic clock, in seconds."""

    now = staticmethod(time.perf_counter)
    sleep = staticmethod(time.sleep)


def live_parts(schedule: Schedule, threads: int) -> Parts:
    """What a probe works with on this machine.

    Parameters
    ----------
    schedule : str
        How the host shall wait for the GPU; only heeded if this process has not used it yet.
    threads : int
        That the caller wants to train with.
    """
    cpus = cores.affinity()

    def open_gpu() -> Gpu:
        return _module("probes.live.cuda").open_gpu(schedule)

    def open_nvml() -> Nvml:
        return _module("probes.live.nvml").open_nvml()

    return Parts(
        clock=MonotonicClock(),
        root=Path("/"),
        affinity=None if cpus is None else tuple(cpus),
        open_gpu=open_gpu,
        open_nvml=open_nvml,
        bind_host_triad=bind_host_triad,
        libraries=installed_libraries(),
        threads=threads,
    )


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise UnavailableError(f"the Python package '{error.name}' is not installed") from error
