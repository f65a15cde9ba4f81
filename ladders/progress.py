"""What a run shows while it runs: a bar on a terminal, a line a fit elsewhere. May import rich and results.schema."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from statistics import median
from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from results.schema import Row

START_S = 2.0
"""What a worker needs beside its fit (imports, data, warm-up), before this run has measured it."""

Fit = tuple[str, str]
"""Rung and contender: what fits of about one duration share."""


class Estimate:
    """Seconds that the remaining fits will take, from earlier repeats of the same; else from the others' median."""

    def __init__(self, earlier: Iterable[Row] = ()) -> None:
        self._seen: dict[Fit, list[float]] = {}
        for row in earlier:
            if row.fit_s is not None:
                self.learn((row.rung, row.contender), row.fit_s + (row.predict_s or 0.0) + START_S)

    def learn(self, fit: Fit, seconds: float) -> None:
        """Note what one fit took, all in all."""
        self._seen.setdefault(fit, []).append(seconds)

    def left(self, fits: Iterable[Fit]) -> float | None:
        """Sum over the fits that are left; None before anything is known."""
        if not self._seen:
            return None
        known = {fit: median(seconds) for fit, seconds in self._seen.items()}
        typical = median(known.values())
        return sum(known.get(fit, typical) for fit in fits)


class Display:
    """Context manager that follows the fits of one run.

    Parameters
    ----------
    console : rich.console.Console
        Where it shows; a bar if that is a terminal.
    fits : list of (rung, contender)
        All that will be made, in order.
    estimate : Estimate
    """

    def __init__(self, console: Console, fits: list[Fit], estimate: Estimate) -> None:
        self._console = console
        self._fits = fits
        self._estimate = estimate
        self._done = 0
        self._started = monotonic()
        self._bar = _bar(console) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
            self._task = self._bar.add_task("", total=len(self._fits), left=self._left())
            self._stop = threading.Event()
            self._clock = threading.Thread(target=self._tick, daemon=True)
            self._clock.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar:
            self._stop.set()
            self._clock.join()
            self._bar.stop()

    def begin(self, fit: Fit) -> None:
        """A fit starts."""
        self._started = monotonic()
        if self._bar:
            self._bar.update(self._task, description=f"{fit[0]} · {fit[1]}", left=self._left())

    def end(self, row: Row) -> None:
        """A fit has ended with this row."""
        if row.status != "unsupported":
            self._estimate.learn((row.rung, row.contender), monotonic() - self._started)
        self._done += 1
        if self._bar:
            self._bar.update(self._task, completed=self._done, left=self._left())
        if not self._bar or row.status != "ok":
            place = f"[{self._done}/{len(self._fits)}]"
            self._console.print(f"{place} {told(row)} ({self._left()})", markup=False, highlight=False, soft_wrap=True)

    def _tick(self) -> None:
        while not self._stop.wait(1.0):
            self._bar.update(self._task, left=self._left())

    def _left(self) -> str:
        if self._done == len(self._fits):
            return "done"
        seconds = self._estimate.left(self._fits[self._done :])
        if seconds is None:
            return "time left unknown"
        return f"about {duration(max(seconds - (monotonic() - self._started), 0.0))} left"


def told(row: Row) -> str:
    """One line on a row."""
    name = f"{row.rung} · {row.contender} · repeat {row.repeat}:"
    if row.status != "ok":
        return f"{name} {row.status}: {row.message.splitlines()[0]}"
    return f"{name} {row.ingest_s:.2f} s ingest, {row.train_s:.2f} s train, {row.metric} {row.value:.5g}"


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def _bar(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", justify="left"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=console,
        transient=True,
    )
