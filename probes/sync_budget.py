"""How many seconds of a fit a host's waits, launches and copies account for. May import the standard library only.

An earlier harness blamed the same 11 to 14 s excess of a fit once on synchronisations and once on the memory pool
(research/harness.md §1): counts times this host's own latencies say which.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEALTHY_SYNC_S = 4e-6
"""A device synchronisation on a healthy host (bonsai's decision 48; research/harness.md §1)."""

NS = 1e-9

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Cost:
    """One part of the budget.

    Attributes
    ----------
    part : str
    count : int or None
        How often, or bytes; None where the fit did not count it.
    each_s : float or None
        Seconds for one; None where this host was not measured.
    measured_s : float or None
        What a trace of the fit itself says it took.
    """

    part: str
    count: int | None
    each_s: float | None
    measured_s: float | None = None

    @property
    def seconds(self) -> float | None:
        """Count times each; None, not measured, if either is."""
        if self.count == 0:
            return 0.0
        return None if self.count is None or self.each_s is None else self.count * self.each_s


@dataclass(frozen=True)
class Budget:
    """What a host accounts for in one fit; an upper bound, as the host may wait while the device works.

    Attributes
    ----------
    costs : tuple of Cost
    fit_s : float or None
        Of the whole fit.
    """

    costs: tuple[Cost, ...]
    fit_s: float | None

    @property
    def seconds(self) -> float | None:
        """Of the parts that were measured; None if none was."""
        known = [cost.seconds for cost in self.costs if cost.seconds is not None]
        return math.fsum(known) if known else None

    @property
    def excess_s(self) -> float | None:
        """What the waits take beyond those of a healthy host."""
        waits = self.costs[0]
        if waits.seconds is None or waits.each_s is None:
            return None
        return max(0.0, waits.seconds - waits.count * HEALTHY_SYNC_S)


def budget_of(counts: Mapping[str, int | None], figures: Figures, fit_s: float | None = None) -> Budget:
    """Multiply a fit's counts by a host's latencies.

    Parameters
    ----------
    counts : mapping
        ``syncs``, ``launches`` (all), ``replayed_launches`` (those inside graphs), ``replays`` (graphs), ``copies``,
        ``bytes_up``, ``bytes_down``; a missing one is not measured. From a trace also ``<part>_s``, seconds.
    figures : mapping
        A passport's, by check: microseconds and GB/s as in ``thresholds.toml``.
    fit_s : float, optional
    """
    prices = _prices(figures)
    counted = {name: value for name, value in counts.items() if isinstance(value, int | float)}
    if "launches" in counted:
        counted["launches"] = max(0, counted["launches"] - counted.get("replayed_launches", 0))
    return Budget(
        tuple(Cost(part, counted.get(part), prices[part], counted.get(f"{part}_s")) for part in prices), fit_s
    )


def figures_of(passport: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a row's passport: the last full probe's, and those of the quick one made before the fit."""
    kept = [(passport.get(part) or {}).get("figures") or {} for part in ("probe", "quick")]
    return {
        name: value
        for figures in kept
        for name, value in figures.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def read_trace(path: Path) -> dict[str, int | float]:
    """Counts and seconds of a fit by its CUDA runtime calls.

    Parameters
    ----------
    path : Path
        What ``nsys stats --report cuda_api_sum --format csv`` (or json) printed.

    Returns
    -------
    dict
        As `budget_of` takes it. Bytes are not in such a trace.

    Raises
    ------
    ValueError
        If it is no such table; says what is missing.
    OSError
        If it cannot be read.
    """
    rows = _table(path.read_text(errors="replace"), path)
    found: dict[str, int | float] = {}
    for row in rows:
        try:
            name, calls, total = row["Name"], int(row["Num Calls"]), float(row["Total Time (ns)"])
        except (KeyError, TypeError, ValueError) as error:
            needed = "'Name', 'Num Calls' and 'Total Time (ns)'"
            raise ValueError(f"{path}: a row needs {needed}, as nsys stats --report cuda_api_sum ({error})") from None
        for part in (part for part, pattern in CALLS.items() if pattern.match(name)):
            found[part] = found.get(part, 0) + calls
            found[f"{part}_s"] = found.get(f"{part}_s", 0.0) + total * NS
    return {**dict.fromkeys(CALLS, 0), "replayed_launches": 0, **found}


CALLS = {
    "syncs": re.compile(
        r"cu(da)?(Stream|Device|Event|Ctx)Synchronize|(cudaMemcpy(2D)?|cuMemcpy(HtoD|DtoH)|cudaFree|cuMemFree)(_\w+)?$"
    ),
    "launches": re.compile(r"cu(da)?Launch(Cooperative)?Kernel"),
    "replays": re.compile(r"cu(da)?GraphLaunch"),
    "copies": re.compile(r"cu(da)?Memcpy"),
}
"""Which runtime and driver calls make which part. A plain ``cudaMemcpy`` copies and waits; ``cudaFree`` waits too."""


def _prices(figures: Figures) -> dict[str, float | None]:
    """Seconds for one of each part; a small copy and a round trip are measured with the wait and the launch in them."""
    trip, enqueue = _scaled(figures, "sync-p50", 1e-6), _scaled(figures, "launch-enqueue", 1e-6)
    wait = None if trip is None else max(0.0, trip - (enqueue or 0.0))
    copy = _scaled(figures, "d2h-4-bytes-pinned", 1e-6)
    return {
        "syncs": wait,
        "launches": enqueue,
        "replays": _scaled(figures, "graph-replay", 1e-6),
        "copies": None if copy is None or wait is None else max(0.0, copy - wait),
        "bytes_up": _per_byte(figures, "h2d-pinned"),
        "bytes_down": _per_byte(figures, "d2h-pinned"),
    }


def _scaled(figures: Figures, name: str, unit: float) -> float | None:
    value = figures.get(name)
    return None if value is None else value * unit


def _per_byte(figures: Figures, name: str) -> float | None:
    rate = figures.get(name)
    return None if not rate or rate < 0 else 1e-9 / rate


def _table(text: str, path: Path) -> list[dict[str, Any]]:
    """Rows of a JSON array or of a CSV, whose header nsys puts under lines of its own."""
    if text.lstrip().startswith("["):
        rows = json.loads(text)
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError(f"{path}: a JSON trace is an array of objects")
        return rows
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if "Num Calls" in line and "Name" in line]
    if not starts:
        raise ValueError(f"{path} is no table of CUDA calls: use nsys stats --report cuda_api_sum --format csv")
    return list(csv.DictReader(io.StringIO("\n".join(lines[starts[0] :]))))


FindRow = Callable[[str], dict[str, Any]]
"""Gives the row of a name; raises `LookupError` or `ValueError` with the reason."""


def row_in_file(named: str) -> dict[str, Any]:
    """The row that ``FILE:LINE`` names, lines counted from 1; without a line, a file of one row.

    Raises
    ------
    LookupError
        If there is no such file or line.
    ValueError
        If the line is no JSON object.
    """
    file, _, line = named.rpartition(":")
    path, number = (Path(file), int(line)) if file and line.isdecimal() else (Path(named), None)
    try:
        text = path.read_text()
        if number is not None:
            text = text.splitlines()[number - 1] if number >= 1 else ""
    except (OSError, IndexError):
        raise LookupError(f"no row '{named}'; name it as FILE:LINE") from None
    try:
        row = json.loads(text)
    except ValueError as error:
        raise ValueError(f"'{named}' is not one JSON object: {error}") from None
    if not isinstance(row, dict):
        raise ValueError(f"'{named}' is not one JSON object")
    return row
