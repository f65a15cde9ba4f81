"""Knobs side by side: what each contender is asked, and what its trained model shows. May import runner and launch.

Found is read off the newest row that answers, or else off a tiny fit of the same knobs, made now and not kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ladders.contenders import CONTENDERS
from ladders.contenders.knobs import asked_of, footing_of
from ladders.data.cache import prepare
from ladders.launch import launch
from ladders.plan import Fit, Plan
from ladders.worker import Job
from results.schema import Row

TINY = {"rows": 2_000, "columns": 8, "seed": 42, "test_rows": 100}
"""Rows of `tall` for a tiny fit."""

TREES = 100
"""Of a tiny fit, at most."""


@dataclass(frozen=True)
class Shown:
    """One contender's knobs.

    Attributes
    ----------
    contender, library : str
    asked : dict
        By our name: (the library's own name, value), or None where it has no equivalent.
    found : dict or None
        By our name, from the trained model; None for a knob the model does not show.
    source : str
        ``row``, ``tiny fit``, or why there is neither.
    footing : dict
        Settings that equal footing needs besides, in the library's own words.
    """

    contender: str
    library: str
    asked: dict[str, tuple[str, Any] | None]
    found: dict[str, Any] | None
    source: str
    footing: dict[str, Any]


def show(plan: Plan, rows: Iterable[Row]) -> list[Shown]:
    """Knobs of every contender on the plan's first rung, in the order of the standings."""
    first = {fit.contender: fit for fit in reversed(plan.fits) if fit.rung.name == plan.rungs[0].name}
    newest = {row.contender: row for row in rows if row.knobs_found and row.rung == plan.rungs[0].name}
    return [_shown(first[name], newest.get(name)) for name in CONTENDERS if name in first]


def to_values(shown: Iterable[Shown]) -> list[dict[str, Any]]:
    """The same as plain JSON values."""
    return [asdict(one) for one in shown]


def _shown(fit: Fit, row: Row | None) -> Shown:
    library = CONTENDERS[fit.contender].module.rpartition(".")[2]
    asked, footing = asked_of(library, fit.asked), footing_of(library, fit.asked)
    if row is not None and row.knobs_asked == fit.asked.model_dump():
        return Shown(fit.contender, library, asked, row.knobs_found, "row", footing)
    found, source = _tiny_fit(fit)
    return Shown(fit.contender, library, asked, found, source, footing)


def _tiny_fit(fit: Fit) -> tuple[dict[str, Any] | None, str]:
    label = "value" if fit.asked.objective == "squared_error" else "above-median"
    task = prepare("tall", TINY | {"label": label})
    few = min(fit.asked.n_estimators, TREES)
    knobs = fit.asked.model_copy(update={"n_estimators": few, "patience": 0})
    module = CONTENDERS[fit.contender].module
    result = launch(
        Job(module=module, knobs=knobs, folder=str(task.folder), data_hash=task.digest, parent=os.getpid()), 120.0
    )
    if result.get("knobs_found"):
        return result["knobs_found"], f"tiny fit of {few} trees"
    return None, f"{result['status']}: {result['message'].splitlines()[0]}"
