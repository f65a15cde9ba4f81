"""Which fits a run makes and in what order: pure, before anything is measured. May import scenario and contenders."""

from __future__ import annotations

import random
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from ladders.contenders.knobs import Knobs
from ladders.scenario import Rung, Scenario, check_contenders


@dataclass(frozen=True)
class Fit:
    """One fit to make: a contender on a rung, in one place of one interleaved block.

    Attributes
    ----------
    rung : Rung
    contender : str
    repeat, block, order, seed : int
        See `results.schema.Row`.
    asked : Knobs
    """

    rung: Rung
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
    threads: int
    fits: tuple[Fit, ...]

    def command(self, fit: Fit) -> str:
        """The shell command that measures one fit again; the scenario is named as the caller did."""
        scale = [f"--scale={self.scale!r}"] if self.scale != 1 else []
        chosen = [f"--contenders={fit.contender}", f"--repeats={fit.repeat + 1}", f"--threads={self.threads}"]
        return shlex.join(["dyno", "ladder", "run", self.named, *scale, *chosen, "--fresh"])


def make_plan(
    scenario: Scenario,
    *,
    threads: int,
    named: str | None = None,
    scale: float = 1.0,
    repeats: int | None = None,
    contenders: Sequence[str] | None = None,
) -> Plan:
    """Lay out the fits.

    A block is one repeat of one rung: every contender once, shuffled by (seed, rung, repeat). Blocks go repeat by
    repeat over all rungs, so that a slow spell hits all contenders alike, and a run cut short has whole repeats.
    The order does not depend on who was chosen, nor on how many repeats: a smaller run is a part of the larger.

    Raises
    ------
    ValueError
        For an unknown contender, or a scale, number of repeats or threads out of range.
    """
    repeats = scenario.repeats if repeats is None else repeats
    chosen = scenario.contenders if contenders is None else list(contenders)
    check_contenders(chosen)
    _check_range("scale", scale, 0 < scale <= 1, "in (0, 1]")
    _check_range("repeats", repeats, 1 <= repeats <= 1000, "from 1 to 1000")
    _check_range("threads", threads, 1 <= threads <= 4096, "from 1 to 4096")
    fits = []
    for repeat in range(repeats):
        for rung in scenario.rungs:
            everyone = [*scenario.contenders, *(name for name in chosen if name not in scenario.contenders)]
            random.Random(f"{scenario.seed}/{rung.name}/{repeat}").shuffle(everyone)
            fits += [
                Fit(rung, name, repeat, repeat, order, scenario.seed, scenario.asked(name, rung, threads))
                for order, name in enumerate(everyone)
                if name in chosen
            ]
    return Plan(scenario, named or scenario.name, scale, threads, tuple(fits))


def _check_range(name: str, value: float, holds: bool, allowed: str) -> None:
    if not holds:
        raise ValueError(f"{name} {value} must be {allowed}")
