"""One release as its page has it: standings, pairs, growth, what changed. Pure; may import results and packaging."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from results.changes import Change, changes
from results.growth import Growth, growth
from results.pairs import Case, pairs
from results.schema import Row
from results.standings import Standings, standings


@dataclass(frozen=True)
class Release:
    """What a release's rows say.

    Attributes
    ----------
    tag : str
    previous : str or None
        The release before it that has rows.
    found : Standings
    cases : tuple of Case
        Growth pairs against their targets.
    slopes : tuple of Growth
        How training time grows along each axis.
    changes : tuple of Change
        Since `previous`; empty without one.
    """

    tag: str
    previous: str | None
    found: Standings
    cases: tuple[Case, ...]
    slopes: tuple[Growth, ...]
    changes: tuple[Change, ...]


def release_of(rows: Iterable[Row], tag: str) -> Release:
    """What the rows say of release `tag`.

    Raises
    ------
    LookupError
        If no row is of this release; the message names those that there are.
    """
    rows = list(rows)
    found = _standings(rows, tag)
    if not found.tables:
        known = ", ".join(sorted({row.release for row in rows})) or "none"
        raise LookupError(f"no published row is of release '{tag}'; those of other releases: {known}")
    previous = release_before({row.release for row in rows}, tag)
    return Release(
        tag,
        previous,
        found,
        pairs(found),
        growth(found),
        changes(_standings(rows, previous), found) if previous else (),
    )


def release_before(releases: Iterable[str], tag: str) -> str | None:
    """The greatest version below `tag`; edits (``0.1.0+d012``) and what is no version are no releases."""
    own = _version(tag)
    earlier = {version: name for name in releases if own and (version := _version(name)) and version < own}
    return earlier[max(earlier)] if earlier else None


def _version(name: str) -> Version | None:
    try:
        version = Version(name)
    except InvalidVersion:
        return None
    return None if version.local else version


def _standings(rows: list[Row], tag: str) -> Standings:
    return standings(row for row in rows if row.release == tag)
