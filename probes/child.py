"""The child of a probe: makes the checks it is told to, a JSON line for each step. May import probes.

Run as ``python -m probes.child``. The schedule flag is fixed once a process has used the GPU, and a call into a hung
driver ends only with its process: so one child a flag, killed by its parent when a step takes too long.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from probes.parts import Parts, Schedule, UnavailableError
from probes.probe import PROBES, outcome
from probes.thresholds import load_thresholds

OPEN_LIMIT_S = 10.0
"""For CUDA or NVML to open: 0.2 to 2 s where healthy."""

PR_SET_PDEATHSIG = 1

Part = TypeVar("Part")


class Order(BaseModel):
    """What the parent asks of one child.

    Attributes
    ----------
    probes : list of str
        Names in `PROBES`, in order.
    schedule : str
    threads : int
    thresholds, replay : Path or None
        A user's thresholds; a recorded host instead of this one.
    parent : int
        Process id that must still be alive.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    probes: list[str]
    schedule: Schedule
    threads: int
    thresholds: Path | None
    replay: Path | None
    parent: int


class Once(Generic[Part]):
    """Opens a part at the first call and gives the same part, or the same refusal, ever after."""

    def __init__(self, open_part: Callable[[], Part]):
        self._open = open_part
        self._part: Part | None = None
        self._refusal: UnavailableError | None = None

    def __call__(self) -> Part:
        """The part; raises `UnavailableError` if it would not open."""
        if self._refusal is not None:
            raise UnavailableError(str(self._refusal))
        if self._part is None:
            try:
                self._part = self._open()
            except UnavailableError as error:
                self._refusal = error
                raise
            except Exception as error:
                self._refusal = UnavailableError(f"{type(error).__name__}: {error}")
                raise self._refusal from error
        return self._part

    def close(self) -> None:
        """Close the part if it is open and can be closed."""
        close = getattr(self._part, "close", None)
        if close is not None:
            close()


def main() -> None:
    """Read the order from standard input, make the checks, tell of each step on standard output."""
    order = Order.model_validate_json(sys.stdin.buffer.read())
    die_with(order.parent)
    # Libraries print what they like; only our own lines may reach the parent.
    lines = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def tell(**event: Any) -> None:
        lines.write(json.dumps(event, allow_nan=False) + "\n")
        lines.flush()

    with _parts(order) as parts:
        work(order, parts, tell)


def work(order: Order, parts: Parts, tell: Callable[..., None]) -> None:
    """Open what each probe needs, run it, and tell of each step before it begins and of each check when it is made."""
    gpu, nvml = Once(parts.open_gpu), Once(parts.open_nvml)
    parts = replace(parts, open_gpu=gpu, open_nvml=nvml)
    thresholds = load_thresholds(order.thresholds)
    by_name = {probe.name: probe for probe in PROBES}
    opened = {"host"}
    try:
        for probe in (by_name[name] for name in order.probes):
            if probe.needs not in opened:
                opened.add(probe.needs)
                tell(begin=f"open {probe.needs}", limit_s=OPEN_LIMIT_S)
                _try(gpu if probe.needs == "gpu" else nvml)
            tell(begin=probe.name, limit_s=probe.limit_s)
            for check in outcome(probe, parts, thresholds):
                tell(check=asdict(check))
            tell(end=probe.name)
    finally:
        gpu.close()
        nvml.close()


def die_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent dies, however it dies (Linux; elsewhere nothing is done)."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the request was made
        sys.exit(1)


def _parts(order: Order) -> AbstractContextManager[Parts]:
    if order.replay is not None:
        from probes.replay import load_replay

        return load_replay(order.replay).parts(order.schedule, order.threads)
    from probes.live.parts import live_parts

    return nullcontext(live_parts(order.schedule, order.threads))


def _try(open_part: Once[Any]) -> None:
    """Open now, so that the time counts as opening; whoever needs the part meets the refusal himself."""
    with suppress(UnavailableError):
        open_part()


if __name__ == "__main__":
    main()
