"""Runs probes in child processes, each step within its time. May import probes.

Nothing a driver does reaches the caller: a step that takes too long is ended with its process, what it owed is unknown,
and a new child goes on with the rest.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from probes.check import Check
from probes.child import Order
from probes.parts import Schedule
from probes.probe import Probe
from probes.thresholds import Thresholds

FULL_LIMIT_S = 30.0
QUICK_LIMIT_S = 10.0
"""About 3 s where healthy: most of it CUDA's start."""

START_LIMIT_S = 10.0
"""For a Python to start and import: 0.3 s from a warm disk."""

CHILD = (sys.executable, "-P", "-m", "probes.child")
"""-P: the caller's directory may hold modules with our names."""

LAST_WORDS = 300
"""Characters of a dead child's standard error that are told."""


def supervise(
    probes: Iterable[Probe],
    thresholds: Thresholds,
    *,
    threads: int,
    user_file: Path | None = None,
    replay: Path | None = None,
    limit_s: float = FULL_LIMIT_S,
    child: Sequence[str] = CHILD,
) -> Iterator[Check]:
    """Make the checks of some probes, each exactly once, as they come.

    Parameters
    ----------
    probes : iterable of Probe
        Of `probes.probe.PROBES`: the child knows them by name.
    thresholds : Thresholds
        Those of `user_file`, for what has to be told without a child.
    threads : int
        That the caller wants to train with.
    user_file, replay : Path, optional
        As for `load_thresholds`, and a recorded host.
    limit_s : float
        Of the whole; what is not made by then is unknown.
    child : sequence of str
        Command that makes the checks, as `probes.child` does.
    """
    watch = _Watch(thresholds, limit_s, child)
    probes = list(probes)
    for schedule in get_args(Schedule):
        pending = [probe for probe in probes if probe.schedule == schedule]
        while pending:
            yield from watch.give_up_at_once(pending)
            if pending:
                order = Order(
                    probes=[probe.name for probe in pending],
                    schedule=schedule,
                    threads=threads,
                    thresholds=user_file,
                    replay=replay,
                    parent=os.getpid(),
                )
                yield from watch.one_child(order, pending)


class _Watch:
    """The clock over all children, and the parts that are known to hang."""

    def __init__(self, thresholds: Thresholds, limit_s: float, command: Sequence[str]):
        self._thresholds = thresholds
        self._command = command
        self._limit_s = limit_s
        self._end = time.monotonic() + limit_s
        self._broken: dict[str, str] = {}

    def give_up_at_once(self, pending: list[Probe]) -> Iterator[Check]:
        """Take out those that cannot be made any more: out of time, or in need of a part that would not open."""
        if time.monotonic() >= self._end:
            yield from self._unknown(pending, pending, f"the {self._limit_s:g} s of the whole probe were over")
        for part, reason in self._broken.items():
            yield from self._unknown(pending, [probe for probe in pending if probe.needs == part], reason)

    def one_child(self, order: Order, pending: list[Probe]) -> Iterator[Check]:
        """Follow one child as far as it gets; at least one probe is taken out of `pending`."""
        step, told = "start", set()
        limit = START_LIMIT_S
        with _Child(self._command, order) as child:
            began = time.monotonic()
            while pending:
                event = child.next_event(min(began + limit, self._end) - time.monotonic())
                if event is None:
                    yield from self._lost(step, told, limit, child, pending)
                    return
                if "check" in event:
                    told.add(event["check"]["name"])
                    yield Check(**event["check"])
                elif "end" in event:
                    pending.pop(0)
                else:
                    step, limit, told = event["begin"], event["limit_s"], set()
                    began = time.monotonic()

    def _lost(self, step: str, told: set[str], limit: float, child: _Child, pending: list[Probe]) -> Iterator[Check]:
        """The child was too slow or died: say what that makes unknown."""
        if child.ended:
            reason = f"the probe's process ended in it ({child.last_words()})"
        elif time.monotonic() >= self._end:
            reason = f"the {self._limit_s:g} s of the whole probe were over"
        else:
            reason = f"took longer than {limit:g} s"
        if step.startswith("open "):
            part = step.removeprefix("open ")
            self._broken[part] = f"opening the {part.upper()}: {reason}"
        elif step == "start":
            yield from self._unknown(pending, pending, f"starting the probe: {reason}")
        else:
            yield from self._unknown(pending, pending[:1], reason, told)

    def _unknown(
        self, pending: list[Probe], lost: list[Probe], reason: str, told: Iterable[str] = ()
    ) -> Iterator[Check]:
        for probe in list(lost):
            pending.remove(probe)
            for name in probe.names:
                if name not in told:
                    yield self._thresholds.unknown(name, reason)


class _Child:
    """A running child; leaving the block ends it and whatever it started."""

    def __init__(self, command: Sequence[str], order: Order):
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, closed by __exit__
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C is for the parent, which then ends the child in its own way
        )
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        with contextlib.suppress(OSError):  # it died at once, which its end of the pipe will tell
            self._process.stdin.write(order.model_dump_json().encode())
            self._process.stdin.close()

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()
        self._errors.close()

    def next_event(self, timeout_s: float) -> dict[str, Any] | None:
        """The next event; None if there is none in time, or none any more (then `ended`)."""
        try:
            event = self._events.get(timeout=max(timeout_s, 0))
        except queue.Empty:
            return None
        self.ended = event is None
        return event

    def last_words(self) -> str:
        """How a dead child ended."""
        code = self._process.wait()
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace").strip()[-LAST_WORDS:]
        ended = f"exit code {code}" if code >= 0 else f"signal {-code}"
        return f"{ended}: {words}" if words else ended

    def _read(self) -> None:
        for line in self._process.stdout:
            try:
                self._events.put(json.loads(line))
            except ValueError:
                break  # killed in the middle of a line
        self._events.put(None)
