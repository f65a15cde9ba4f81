"""The table of data sources by name, and how many rows a scale leaves. May import the sources beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ladders.data import flights, synthetic
from ladders.data.task import Task


@dataclass(frozen=True)
class Source:
    """One recipe: `make(scale=..., **options)` gives the task, `module` holds all the code that decides its bits."""

    make: Callable[..., Task]
    module: ModuleType
    options: dict[str, type]
    """The options a scenario may set, and their types."""


SOURCES = {
    "flights": Source(flights.make_flights, flights, {"label": str}),
    "msd-shaped": Source(synthetic.make_msd_shaped, synthetic, {"seed": int, "label": str}),
    "tall": Source(
        synthetic.make_tall,
        synthetic,
        {"rows": int, "columns": int, "seed": int, "test_rows": int, "label": str},
    ),
}


def check_options(source: str, options: dict[str, Any]) -> None:
    """Refuse an unknown source or option before anything is generated.

    Raises
    ------
    ValueError
        Names the unknown one and what is known.
    """
    if source not in SOURCES:
        raise ValueError(f"unknown data source '{source}'; choose one of {', '.join(SOURCES)}")
    known = SOURCES[source].options
    for name, value in options.items():
        if name not in known:
            raise ValueError(f"data source '{source}' has no option '{name}'; it has {', '.join(known)}")
        if type(value) is not known[name]:
            raise ValueError(f"option {name}={value!r} of data source '{source}' must be {known[name].__name__}")
