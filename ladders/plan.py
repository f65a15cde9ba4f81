"""Which fits a run makes and in what order: pure, before anything is measured. May import scenario and contenders."""

from __future__ import annotations

import random
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ladders.contenders.knobs import Knobs
from ladders.data.sources import SOURCES
from ladders.scenario import Rung, Scenario, check_contenders


@dataclass(frozen=True)
class Fit:
    """One fit to make: a contender on a rung, in one place of one interleaved block.

    Attributes
    ----------
    rung : Rung
    threads : int
    contender : str
    repeat, block, order, seed : int
        See `results.schema.Row`.
    asked : Knobs
    """

    rung: Rung
    threads: int
    contender: str
    repeat: int
    block: int
    order: int
    seed: int
    asked: Knobs


@dataclass(frozen=True)
class Plan:
    """A scenario with what the caller chose, and its fits in order of execution."""

    scenario: Scenario
    named: str
    scale: float
    fits: tuple[Fit, ...]
    data: str | None = None

    @property
    def rungs(self) -> list[Rung]:
        """Those that have fits, in the scenario's order."""
        chosen = {fit.rung.name for fit in self.fits}
        return [rung for rung in self.scenario.rungs if rung.name in chosen]

    def command(self, fit: Fit) -> str:
        """The shell command that measures one fit again; the scenario is named as the caller did."""
        given = [f"--scale={self.scale!r}"] if self.scale != 1 else []
        given += [f"--data={self.data}"] if self.data else []
        chosen = [f"--rungs={fit.rung.name}", f"--contenders={fit.contender}"]
        counted = [f"--repeats={fit.repeat + 1}", f"--threads={fit.threads}"]
        return shlex.join(["dyno", "ladder", "run", self.named, *given, *chosen, *counted, "--fresh"])


def make_plan(
    scenario: Scenario,
    *,
    cores: int,
    named: str | None = None,
    scale: float = 1.0,
    repeats: int | None = None,
    contenders: Sequence[str] | None = None,
    rungs: Sequence[str] | None = None,
    threads: Sequence[int] | None = None,
    data: str | None = None,
) -> Plan:
    """Lay out the fits.

    A block is one repeat of one rung at one number of threads: every contender once, shuffled by (seed, rung, threads,
    repeat). Blocks go repeat by repeat over all rungs, so that a slow spell hits all contenders alike, and a run cut
    short has whole repeats. The order does not depend on what was chosen: a smaller run is a part of the larger.

    Parameters
    ----------
    cores : int
        Threads of a scenario that names none.
    repeats, contenders, rungs, threads : optional
        Instead of the scenario's and the rungs' own.
    data : str, optional
        A copy on disk of the data that the ladder would fetch.

    Raises
    ------
    ValueError
        For an unknown contender or rung; a scale, number of repeats or threads out of range; data that no rung takes.
    """
    scenario = _with_data(scenario, data) if data is not None else scenario
    chosen = scenario.contenders if contenders is None else list(contenders)
    check_contenders(chosen)
    _check_range("scale", scale, 0 < scale <= 1, "in (0, 1]")
    if repeats is not None:
        _check_range("repeats", repeats, 1 <= repeats <= 1000, "from 1 to 1000")
    if threads is not None:
        _check_threads(threads)
    blocks = [
        (repeat, rung, count)
        for rung in scenario.chosen_rungs(rungs)
        for repeat in range(repeats or rung.repeats or scenario.repeats)
        for count in threads or rung.threads or scenario.threads or [cores]
    ]
    blocks.sort(key=lambda block: block[0])
    fits = tuple(fit for block in blocks for fit in _block(scenario, *block, chosen))
    return Plan(scenario, named or scenario.name, scale, fits, data)


def _with_data(scenario: Scenario, path: str) -> Scenario:
    """The scenario with its fetched data taken from a file."""
    if not Path(path).is_file():
        raise ValueError(f"data '{path}' is not a file; give a zip or text copy of what the ladder would fetch")
    options = {"path": str(Path(path).resolve())}
    rungs = [
        rung.model_copy(update={"options": rung.options | options}) if "path" in SOURCES[rung.data].options else rung
        for rung in scenario.rungs
    ]
    if rungs == scenario.rungs:
        raise ValueError(f"--data is for ladders that fetch theirs, such as msd; '{scenario.name}' makes its own")
    return scenario.model_copy(update={"rungs": rungs})


def _block(scenario: Scenario, repeat: int, rung: Rung, threads: int, chosen: list[str]) -> list[Fit]:
    everyone = [*scenario.contenders, *(name for name in chosen if name not in scenario.contenders)]
    random.Random(f"{scenario.seed}/{rung.name}/{threads}/{repeat}").shuffle(everyone)
    return [
        Fit(rung, threads, name, repeat, repeat, order, scenario.seed, scenario.asked(name, rung, threads))
        for order, name in enumerate(everyone)
        if name in chosen
    ]


def _check_threads(threads: Sequence[int]) -> None:
    if not threads:
        raise ValueError("no number of threads is named")
    for count in threads:
        _check_range("threads", count, 1 <= count <= 4096, "from 1 to 4096")
    if len(set(threads)) < len(threads):
        raise ValueError(f"threads {', '.join(map(str, threads))} names a number twice")


def _check_range(name: str, value: float, holds: bool, allowed: str) -> None:
    if not holds:
        raise ValueError(f"{name} {value} must be {allowed}")
