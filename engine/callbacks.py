"""What may watch a fit from outside: called after each tree, may end it. May import nothing of the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """The fit as a callback sees it.

    Attributes
    ----------
    tree : int
        Index of the tree just finished.
    n_estimators : int
        Trees at most.
    history : dict of str to list of float
        Metrics of every round so far; empty without an eval set.
    """

    tree: int
    n_estimators: int
    history: dict[str, list[float]]


Callback = Callable[[Progress], Any]
"""Returning ``True`` (nothing else) ends the fit after this tree; raising fails it."""


class ProgressBar:
    """A rich progress bar over the trees, with the newest metric; a context manager and a callback.

    Examples
    --------
    >>> with ProgressBar() as bar:
    ...     model = engine.train(params, dataset, callbacks=[bar])
    """

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[metric]}"),
        )
        self._task = None

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        """Show one more finished tree."""
        if self._task is None:
            self._task = self._bar.add_task("training", total=progress.n_estimators, metric="")
        newest = " ".join(f"{name} {values[-1]:.6g}" for name, values in progress.history.items())
        self._bar.update(self._task, completed=progress.tree + 1, metric=newest)
