"""Which commit of a line brought a change: measures, remembers, searches. May import builds, runner and results.

What is measured is appended to a journal before the next measurement begins, so that Ctrl-C, a kill or a lost node
costs one fit. Times of another host's passport in the journal are passed over; counts and bits are the same everywhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from ladders.builds import BuildError, checkout, git
from ladders.compare import command_of, prepare_version
from ladders.plan import Plan
from ladders.runner import measure as measure_step
from ladders.worker import RESULT
from results.search import Answer, ExactSearch, NoisySearch
from results.series import COUNTS, measured
from results.store import Store

EXACT = (*COUNTS, "model_digest", "rmse")
"""Metrics of which one fit is enough; all others are times."""

METRICS = ("train_s", "ingest_s", "fit_s", "predict_s", *EXACT)

TAIL = 2000

Values = dict[str, Any]
Measure = Callable[[str], Values]
"""A commit's figures by name, `phases` among them; raises `UnmeasurableError`."""


class UnmeasurableError(RuntimeError):
    """A commit that cannot be measured, for a reason that will not pass; it is left out of the search."""


class HostError(RuntimeError):
    """The host, not a commit, is in the way; what was measured before stays in the journal."""


@dataclass(frozen=True)
class Entry:
    """One measurement in the journal: the figures, or why there are none."""

    commit: str
    passport: str
    values: Values | None
    reason: str | None


@dataclass(frozen=True)
class Bisection:
    """What was found.

    Attributes
    ----------
    answer : {"found", "no regression", "too noisy"}
    commits : tuple of str
        The first bad commit last; unmeasurable ones right before it, which may have brought it as well, ahead of it.
        The most probable one where it is too noisy; none without a regression.
    confidence : float
        Posterior of the answer; 1 for what is exact.
    old, new : float, int, str or None
        Level on either side; for a time, means.
    noise : float or None
        Standard deviation of one measurement, as a share; None for what is exact.
    runs, planned : int
    skipped : dict of str to str
        Commits that could not be measured, and why.
    entries_before, entries_after : tuple of dict
        Figures on either side, for the phase that moved.
    """

    answer: Answer
    commits: tuple[str, ...]
    confidence: float
    old: Any
    new: Any
    noise: float | None
    runs: int
    planned: int
    skipped: dict[str, str]
    entries_before: tuple[Values, ...] = ()
    entries_after: tuple[Values, ...] = ()


class Journal:
    """Measurements on disk, one JSON object a line, appended whole; lines that are none are passed over."""

    def __init__(self, directory: Path, *identity: str) -> None:
        self._store = Store(directory)
        self._name = hashlib.sha256("\0".join(identity).encode()).hexdigest()[:16]

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._store.directory / f"{self._name}.jsonl"

    def append(self, entry: Entry) -> None:
        """Write durably; raises `results.store.StoreError`."""
        self._store.append_text(self._name, json.dumps(entry.__dict__))

    def read(self) -> list[Entry]:
        """Everything measured so far."""
        entries = []
        for line in self.path.read_text(errors="replace").splitlines() if self.path.exists() else ():
            try:
                entries.append(Entry(**json.loads(line)))
            except (ValueError, TypeError):
                continue
        return entries


def line_of(repository: Path, good: str, bad: str) -> list[str]:
    """The commits from good to bad, both included, oldest first, along first parents.

    Raises
    ------
    ValueError
        If good is no ancestor of bad, or is bad.
    """
    try:
        git(repository, "merge-base", "--is-ancestor", good, bad)
    except subprocess.CalledProcessError:
        raise ValueError(f"GOOD {good[:10]} is no ancestor of BAD {bad[:10]}; are they swapped?") from None
    between = git(repository, "rev-list", "--first-parent", "--reverse", f"{good}..{bad}").split()
    if not between:
        raise ValueError(f"GOOD and BAD are one commit, {good[:10]}")
    return [good, *between]


def bisect(
    line: list[str],
    metric: str,
    measure: Measure,
    journal: Journal,
    passport: str,
    smallest: float,
    tell: Callable[[str], None] = lambda text: None,
) -> Bisection:
    """Search until the answer is sure, or the planned number of runs is used up.

    Parameters
    ----------
    line : list of str
        Of `line_of`.
    metric : str
        Out of `METRICS`, or ``phase:NAME``.
    measure : callable
    journal : Journal
    passport : str
        Digest of this host's.
    smallest : float
        Relative; of times only.
    tell : callable
        Given a line after each measurement.

    Raises
    ------
    UnmeasurableError
        If good or bad itself cannot be measured.
    ValueError
        If a measurement lacks the metric.
    """
    entries = [entry for entry in journal.read() if entry.commit in line and _usable(entry, metric, passport)]
    if entries:
        tell(f"{len(entries)} measurements are there already, in {journal.path}")
    while True:
        skipped = {entry.commit: entry.reason for entry in entries if entry.values is None}
        for end in (line[0], line[-1]):
            if end in skipped:
                raise UnmeasurableError(f"{end[:10]}, an end of the range, cannot be measured: {skipped[end]}")
        places = [commit for commit in line if commit not in skipped]
        search = _search(places, metric, smallest, entries)
        if search.answer() != "searching":
            return _result(search, line, places, metric, entries, skipped)
        commit = places[search.next_place()]
        entry = _measured(commit, metric, measure, passport)
        journal.append(entry)
        entries.append(entry)
        shown = entry.reason if entry.values is None else _shown(entry.values[metric])
        tell(f"{commit[:10]}: {metric} {shown} ({len(entries)} of at most {search.planned()} runs)")


@contextmanager
def by_command(repository: Path, command: str, timeout_s: float) -> Iterator[Measure]:
    """Measure by a shell command run in a checkout of the commit; its last ``RESULT {json}`` line has the figures.

    The commit's hash is in ``DYNO_COMMIT``. A commit whose command fails, or prints no such line, is unmeasurable.
    """
    with ExitStack() as kept:
        trees: dict[str, Path] = {}

        def measure(commit: str) -> Values:
            if commit not in trees:
                trees[commit] = kept.enter_context(checkout(repository, commit))
            return _run(command, trees[commit], commit, timeout_s)

        yield measure


def by_ladder(plan: Plan, metric: str, repository: Path, store: Store, tell: Callable[[str], None]) -> Measure:
    """Measure the plan's one fit under a build of the commit; every fit is also a row of the store."""
    counter = count()

    def measure(commit: str) -> Values:
        try:
            version = prepare_version(plan, repository, commit, tell)
        except BuildError as error:
            raise UnmeasurableError(str(error)) from error
        (step,) = version.steps
        again = command_of(plan, commit, commit)
        step = replace(step, fields={**step.fields, "repeat": next(counter), "command": again})
        row = measure_step(step, plan, store, version.folder)
        if row.status != "ok":
            raise UnmeasurableError(f"{row.status}: {row.message}")
        if not row.valid and metric not in EXACT:
            raise HostError(f"this host's times are not to be believed: {row.invalid_reason}")
        names = {name: "value" if name == "rmse" else name for name in METRICS}
        return {"phases": row.phases, **{name: measured(row, field) for name, field in names.items()}}

    return measure


def _usable(entry: Entry, metric: str, passport: str) -> bool:
    return entry.values is None or metric in EXACT or entry.passport == passport


def _measured(commit: str, metric: str, measure: Measure, passport: str) -> Entry:
    try:
        values = measure(commit)
    except UnmeasurableError as error:
        return Entry(commit, passport, None, str(error))
    if metric.startswith("phase:"):
        values[metric] = (values.get("phases") or {}).get(metric.removeprefix("phase:"))
    value = values.get(metric)
    usable = isinstance(value, str) if metric == "model_digest" else isinstance(value, int | float) and value == value
    if not usable or (metric not in EXACT and not value > 0):
        known = ", ".join(name for name, one in values.items() if one is not None)
        raise ValueError(f"{commit[:10]} shows {metric} = {value!r}, which cannot be bisected; measured are: {known}")
    return Entry(commit, passport, values, None)


def _search(places: list[str], metric: str, smallest: float, entries: list[Entry]) -> NoisySearch | ExactSearch:
    exact = metric in EXACT
    search = ExactSearch(len(places), metric != "model_digest") if exact else NoisySearch(len(places), smallest)
    for entry in entries:
        if entry.values is not None:
            search.add(places.index(entry.commit), entry.values[metric])
    return search


def _result(
    search: NoisySearch | ExactSearch,
    line: list[str],
    places: list[str],
    metric: str,
    entries: list[Entry],
    skipped: dict[str, str],
) -> Bisection:
    answer, exact = search.answer(), isinstance(search, ExactSearch)
    place = len(places) - 1 if answer == "no regression" else search.best()
    first = line.index(places[place])
    before, after = _sides(entries, line, first if answer != "no regression" else len(line))
    return Bisection(
        answer=answer,
        commits=() if answer == "no regression" else tuple(line[line.index(places[place - 1]) + 1 : first + 1]),
        confidence=1.0 if exact else float(search.posterior().max()),
        old=_level(before, metric, -1),
        new=_level(after, metric, 0),
        noise=None if exact else search.noise(),
        runs=sum(entry.values is not None for entry in entries),
        planned=search.planned(),
        skipped=skipped,
        entries_before=before,
        entries_after=after,
    )


def _sides(entries: list[Entry], line: list[str], first: int) -> tuple[tuple[Values, ...], tuple[Values, ...]]:
    sides: tuple[list[Values], list[Values]] = ([], [])
    for entry in sorted(entries, key=lambda entry: line.index(entry.commit)):
        if entry.values is not None:
            sides[line.index(entry.commit) >= first].append(entry.values)
    return tuple(sides[0]), tuple(sides[1])


def _level(side: tuple[Values, ...], metric: str, beside: int) -> Any:
    """A mean of times; of what is exact, the value beside the change."""
    values = [one[metric] for one in side]
    if not values:
        return None
    return values[beside] if metric in EXACT else sum(values) / len(values)


def _shown(value: Any) -> str:
    return value[:12] if isinstance(value, str) else f"{value:.6g}"


def _run(command: str, tree: Path, commit: str, timeout_s: float) -> Values:
    child = subprocess.Popen(
        command,
        shell=True,
        cwd=tree,
        env=os.environ | {"DYNO_COMMIT": commit},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that all it starts can be ended with it
    )
    try:
        output, errors = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise UnmeasurableError(f"not done after {timeout_s:g} s; raise --timeout") from None
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    if child.returncode:
        tail = errors.decode(errors="replace").strip()[-TAIL:]
        raise UnmeasurableError(f"the command ended with exit code {child.returncode}: {tail or 'no message'}")
    for line in reversed(output.decode(errors="replace").splitlines()):
        if line.startswith(RESULT):
            try:
                found = json.loads(line.removeprefix(RESULT))
            except ValueError:
                break
            if isinstance(found, dict):
                return found
    raise UnmeasurableError(f"the command printed no line '{RESULT}{{json object}}'")
