"""Thresholds of every check: one TOML, a user's file over it. May import probes.check and pydantic.

The order of the tables in ``thresholds.toml`` is the order of weight: causes stand before their symptoms, so the first
reason of a verdict is the one to act on.
"""

from __future__ import annotations

import difflib
import math
import os
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from probes.check import Check, Value, Verdict

USER_FILE = "DYNO_THRESHOLDS"
"""Environment variable that names a TOML of single keys to override."""

Bound = Annotated[float, Field(allow_inf_nan=False)] | None
Text = Annotated[str, Field(min_length=1)]


class ThresholdError(ValueError):
    """A table of thresholds that cannot be used; names the file, the table and the key."""


class Threshold(BaseModel):
    """What one check is held against.

    Attributes
    ----------
    unit : str
        Of the value and the bounds; "" for facts.
    warn_above, fail_above, warn_below, fail_below : float or None
        Strict inequalities. None of them for a fact, whose probe says the verdict.
    drift : float or None
        How many times the smaller of two values around a fit the larger may be; beyond, the fit's row is not valid.
    when_unknown : {"note", "warn", "reject"}
        What the verdict makes of a host where the check could not be made.
    why, advice : str
        What it costs a fit, and what to do about it.
    source : str
        Where the bounds come from; ``proposal`` where nobody has published one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    unit: str = ""
    warn_above: Bound = None
    fail_above: Bound = None
    warn_below: Bound = None
    fail_below: Bound = None
    drift: Annotated[float, Field(gt=1, allow_inf_nan=False)] | None = None
    when_unknown: Literal["note", "warn", "reject"] = "note"
    why: Text
    advice: Text
    source: Text

    @model_validator(mode="after")
    def _bounds_agree(self) -> Self:
        above = [bound for bound in (self.warn_above, self.fail_above) if bound is not None]
        below = [bound for bound in (self.fail_below, self.warn_below) if bound is not None]
        if above != sorted(above):
            raise ValueError(f"warn_above {self.warn_above:g} lies above fail_above {self.fail_above:g}: swap them")
        if below != sorted(below):
            raise ValueError(f"warn_below {self.warn_below:g} lies below fail_below {self.fail_below:g}: swap them")
        if above and below and below[-1] > above[0]:
            raise ValueError(f"no value can pass: the bounds below reach {below[-1]:g}, those above begin {above[0]:g}")
        return self

    @property
    def words(self) -> str:
        """As in ``warn above 15, fail above 50``; "" for a fact."""
        bounds = (
            (f"{verdict} {side}", getattr(self, f"{verdict}_{side}"))
            for side in ("above", "below")
            for verdict in ("warn", "fail")
        )
        return ", ".join(f"{name} {bound:g}" for name, bound in bounds if bound is not None)

    def verdict(self, value: float) -> Verdict:
        """Which side of the bounds a finite value lies on."""
        for verdict, above, below in (
            ("fail", self.fail_above, self.fail_below),
            ("warn", self.warn_above, self.warn_below),
        ):
            if (above is not None and value > above) or (below is not None and value < below):
                return verdict
        return "pass"


class Thresholds(Mapping[str, Threshold]):
    """The tables by check name, in the order of their weight, and the checks made with them."""

    def __init__(self, tables: dict[str, Threshold]):
        self._tables = tables

    def __getitem__(self, name: str) -> Threshold:
        if name not in self._tables:
            raise KeyError(f"no check is named '{name}'{_nearest(name, self._tables)}")
        return self._tables[name]

    def __iter__(self):
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def judge(self, name: str, value: float, why: str | None = None) -> Check:
        """Judge a number by the bounds of its table.

        Parameters
        ----------
        name : str
        value : float
            In the table's unit; one that is not finite was not measured.
        why : str, optional
            What was found and what it means for a fit; else the table's own words.

        Raises
        ------
        KeyError
            If no table has that name.
        """
        value = float(value)
        if not math.isfinite(value):
            return self.unknown(name, f"the measurement gave {value}")
        return self._check(name, value, self[name].verdict(value), why or self[name].why)

    def state(self, name: str, value: Value, verdict: Verdict, why: str) -> Check:
        """A fact, whose verdict the probe says itself; a number that is not finite was not measured."""
        if isinstance(value, float) and not math.isfinite(value):
            return self.unknown(name, f"the measurement gave {value}")
        return self._check(name, value, verdict, why)

    def unknown(self, name: str, why: str) -> Check:
        """A check that could not be made: never a pass."""
        return self._check(name, None, "unknown", why)

    def _check(self, name: str, value: Value, verdict: Verdict, why: str) -> Check:
        table = self[name]
        return Check(name, value, table.unit, verdict, table.words, why, table.source)


def load_thresholds(user_file: Path | None = None) -> Thresholds:
    """The project's thresholds with a user's keys over them.

    Parameters
    ----------
    user_file : Path, optional
        TOML of the same form, with any part of the tables and keys; else the file that ``DYNO_THRESHOLDS`` names.

    Raises
    ------
    ThresholdError
        If the user's file cannot be read, is not TOML, names an unknown check or key, or holds a value out of range.
    """
    tables = tomllib.loads((files("probes") / "thresholds.toml").read_text())
    named = user_file or os.environ.get(USER_FILE) or None
    if named is not None:
        for name, keys in _read(Path(named)).items():
            if name not in tables:
                raise ThresholdError(f"{named}: no check is named '{name}'{_nearest(name, tables)}")
            if not isinstance(keys, dict):
                raise ThresholdError(f"{named}: '{name}' is a check, so a table is needed: [{name}]")
            tables[name] |= keys
    return Thresholds({name: _validated(name, keys, named or "thresholds.toml") for name, keys in tables.items()})


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ThresholdError(f"cannot read the thresholds in {path} ({error.strerror})") from None
    except ValueError as error:
        raise ThresholdError(f"{path} is not TOML: {error}") from None


def _validated(name: str, keys: dict[str, Any], file: str | Path) -> Threshold:
    for key in keys:
        if key not in Threshold.model_fields:
            raise ThresholdError(f"{file}: [{name}] has no key '{key}'{_nearest(key, Threshold.model_fields)}")
    try:
        return Threshold.model_validate(keys)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join([name, *map(str, first["loc"])])
        raise ThresholdError(f"{file}: {where}: {first['msg']} (found {first['input']!r:.200})") from None


def _nearest(word: str, known: Mapping[str, Any] | dict[str, Any]) -> str:
    """The known word most like it, as the end of a message."""
    near = difflib.get_close_matches(word, list(known), 1, cutoff=0.4)
    return f"; nearest: '{near[0]}'" if near else f"; known: {', '.join(known)}"
