"""What a run shows while it runs: a bar on a terminal, a line a fit elsewhere. May import rich and results."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from statistics import median
from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from results.render import in_threads
from results.schema import Row

START_S = 1.3
"""What a worker needs beside its fit: imports, data, warm-up (median of ten contenders on a host of 2 cores)."""

PREP_NS, TREE_NS = 90.0, 3.6
"""Thread-nanoseconds a cell of the matrix, once and for each tree: means over ten contenders and three shapes, from
research/cpu.md. Single contenders differ by a factor of two either way; the sum over a whole ladder by far less."""

GPU_PREP_NS, GPU_TREE_NS = 4.0, 0.05
"""The same on a GPU, whatever the threads: 100 trees over 2^31 cells took the rivals 18 to 31 s on one of 96 GB
(research/harness.md §1)."""

Fit = tuple[str, int, str]
"""Rung, threads and contender: what fits of about one duration share."""


def expected_seconds(cells: int, trees: int, threads: int, target: str = "cpu") -> float:
    """What a fit that was never measured may take: a guess that lets a ladder be planned before its first run."""
    if target == "gpu":
        return START_S + cells * (GPU_PREP_NS + GPU_TREE_NS * trees) * 1e-9
    return START_S + cells * (PREP_NS + TREE_NS * trees) / threads * 1e-9


def scaled_seconds(row: Row, cells: int, threads: int) -> float:
    """What a fit may take by a row of the same contender and rung at another scale or number of threads.

    In proportion to the cells; on a CPU also to the threads.
    """
    share = cells / (row.n_rows * row.n_features)
    share *= row.threads / threads if row.device == "cpu" else 1.0
    return START_S + share * (row.fit_s + (row.predict_s or 0.0))


class Estimate:
    """Seconds that the remaining fits will take: from earlier repeats of the same, else as expected.

    What is measured corrects what is only expected: by the median of measured over expected.

    Parameters
    ----------
    expected : dict of Fit to float
        Seconds, for every fit that may be asked for.
    earlier : iterable of Row
    """

    def __init__(self, expected: Mapping[Fit, float], earlier: Iterable[Row] = ()) -> None:
        self._expected = expected
        self._seen: dict[Fit, list[float]] = {}
        for row in earlier:
            if row.fit_s is not None:
                seconds = row.fit_s + (row.predict_s or 0.0) + START_S
                self.learn((row.rung, row.threads, row.contender), seconds)

    def learn(self, fit: Fit, seconds: float) -> None:
        """Note what one fit took, all in all."""
        self._seen.setdefault(fit, []).append(seconds)

    def left(self, fits: Iterable[Fit]) -> float:
        """Sum over the fits that are left."""
        known = {fit: median(seconds) for fit, seconds in self._seen.items()}
        # A fit expected to take nothing (its library is missing) says nothing about the others.
        slower = [known[fit] / seconds for fit, seconds in self._expected.items() if fit in known and seconds > 0]
        factor = median(slower) if slower else 1.0
        return sum(known.get(fit, factor * self._expected[fit]) for fit in fits)


class Display:
    """Context manager that follows the fits of one run.

    Parameters
    ----------
    console : rich.console.Console
        Where it shows; a bar if that is a terminal.
    fits : list of (rung, threads, contender)
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
            self._bar.update(self._task, description=named(*fit), left=self._left())

    def end(self, row: Row) -> None:
        """A fit has ended with this row."""
        if row.status != "unsupported":
            self._estimate.learn((row.rung, row.threads, row.contender), monotonic() - self._started)
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
        seconds = self._estimate.left(self._fits[self._done :]) - (monotonic() - self._started)
        return f"about {duration(max(seconds, 0.0))} left"


def told(row: Row) -> str:
    """One line on a row."""
    name = f"{named(row.rung, row.threads, row.contender)} · repeat {row.repeat}:"
    if row.status != "ok":
        return f"{name} {row.status}: {row.message.splitlines()[0]}"
    stopped = f", best of {row.rounds} rounds: {row.best_round}" if row.rounds != row.best_round else ""
    return f"{name} {row.ingest_s:.2f} s ingest, {row.train_s:.2f} s train, {row.metric} {row.value:.5g}{stopped}"


def named(rung: str, threads: int, contender: str) -> str:
    """A fit in words."""
    return f"{rung} · {in_threads(threads)} · {contender}"


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
