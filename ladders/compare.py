"""Two commits measured against each other in blocks, a rival as control. May import runner, builds and results."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from pathlib import Path

from ladders.builds import build
from ladders.plan import Fit, Plan
from ladders.provenance import Provenance
from ladders.runner import Step, measure, prepare_steps
from results.schema import Row
from results.standings import ENGINE_PREFIX
from results.store import Store

ORDER = "ABBA"
"""Of the versions in one block; the control follows the contender under each."""


@dataclass(frozen=True)
class Version:
    """A commit, built, with the fits that are made under it: the contender's and, if there is one, the control's."""

    commit: str
    folder: Path
    steps: tuple[Step, ...]


def prepare_version(plan: Plan, repository: Path, commit: str, tell: Callable[[str], None]) -> Version:
    """Build a commit and describe its fits.

    Parameters
    ----------
    plan : Plan
        Of one rung at one number of threads, with one repeat; contender first.
    repository : Path
    commit : str
        Full hash.
    tell : callable
        Given a line before what takes long.

    Raises
    ------
    ladders.builds.BuildError
        If it does not build.
    OSError
        If data or build cannot be cached.
    """
    folder = build(repository, commit, tell)
    steps = prepare_steps(plan, tell, Provenance(commit, False, release_of(folder)))
    return Version(
        commit, folder, tuple(_of_release(step) for step in sorted(steps, key=lambda step: _is_control(step.fit)))
    )


def release_of(folder: Path) -> str:
    """The version of the packages in a build."""
    found = [one.version for one in distributions(path=[str(folder)]) if one.metadata["Name"] == "gbt-dyno"]
    return found[0] if found else "unknown"


def measure_block(number: int, a: Version, b: Version, plan: Plan, store: Store) -> Iterator[Row]:
    """One block: every fit of A, B, B, A, written row by row."""
    order = 0
    for place, side in enumerate(ORDER):
        version = a if side == "A" else b
        for step in version.steps:
            # Each version is fitted twice a block: its repeats are numbered through.
            fields = {"repeat": 2 * number + place // 2, "block": number, "order": order}
            fields["command"] = command_of(plan, a.commit, b.commit)
            yield measure(replace(step, fields={**step.fields, **fields}), plan, store, version.folder)
            order += 1


def command_of(plan: Plan, a: str, b: str) -> str:
    """The shell command that measures the plan's contender under two commits again."""
    contender, *control = dict.fromkeys(fit.contender for fit in sorted(plan.fits, key=_is_control))
    fit, scale = plan.fits[0], [f"--scale={plan.scale!r}"] if plan.scale != 1 else []
    chosen = [f"--rung={fit.rung.name}", f"--contender={contender}", f"--control={control[0] if control else 'none'}"]
    words = ["dyno", "results", "compare", a, b, f"--ladder={plan.named}", *chosen, f"--threads={fit.threads}", *scale]
    return shlex.join(words)


def _is_control(fit: Fit) -> bool:
    return not fit.contender.startswith(ENGINE_PREFIX)


def _of_release(step: Step) -> Step:
    """The engine's version is that of its build, not the one installed here."""
    if step.fields["library"] != "gbt-dyno":
        return step
    return replace(step, fields={**step.fields, "version": step.fields["release"]})
