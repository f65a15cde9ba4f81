"""What changed between two releases, contender by contender, with a verdict. May import standings and verdict.

A change is said only where both releases were measured on one host with the same work: the rows' passports, data,
scale, threads, device and knobs agree. A block of the new release is set against the old release's block of the same
number, each less what a rival of one version did in the same block, so that a host that got slower is not the engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from results.standings import Entry, Pair, RowClass, Standings, Table, difference
from results.verdict import Block, Verdict, judge


@dataclass(frozen=True)
class Change:
    """The engine in one growth pair of one rung: then and now.

    Attributes
    ----------
    ladder, rung, threads, growth, contender : str, str, int, str, str
    old, new : Entry or None
        None where that release was not measured.
    verdict : Verdict or None
        Of the training time, new over old; None where nothing can be said, and then `why` has the reason.
    control : str or None
        The rival that stood as control.
    """

    ladder: str
    rung: str
    threads: int
    growth: str
    contender: str
    old: Entry | None
    new: Entry | None
    verdict: Verdict | None = None
    control: str | None = None
    why: str = ""


def changes(old: Standings, new: Standings) -> tuple[Change, ...]:
    """Every engine contender of either release, those of the new one first, in the order of the standings."""
    then, now = _engines(old), _engines(new)
    return tuple(_change(key, then.get(key), now.get(key)) for key in [*now, *(key for key in then if key not in now)])


Place = tuple[str, str, int, str, str]
Found = tuple[Table, Pair, Entry]


def _engines(found: Standings) -> dict[Place, Found]:
    return {
        (table.ladder, table.rung, table.row_class.threads, pair.growth, entry.contender): (table, pair, entry)
        for table in found.tables
        for pair in table.pairs
        for entry in pair.entries
        if entry.is_engine
    }


def _change(place: Place, then: Found | None, now: Found | None) -> Change:
    change = Change(*place, old=then and then[2], new=now and now[2])
    if then is None or now is None:
        return replace(change, why=f"not measured in the {'earlier' if then is None else 'later'} release")
    (old_table, old_pair, old), (new_table, new_pair, new) = then, now
    apart = difference(_work(new_table.row_class), _work(old_table.row_class))
    if apart or old.knobs_asked != new.knobs_asked:
        return replace(change, why=f"not comparable: {apart or 'other knobs'}")
    control = min(_controls(old_pair, new_pair), key=_spread, default=None)
    blocks = _blocks(old, new, control)
    if not blocks:
        return replace(change, why="not comparable: no block with a time above zero in both")
    return replace(change, verdict=judge(blocks), control=control and control[0].contender)


def _work(shared: RowClass) -> RowClass:
    """What must agree between releases: all but the code itself."""
    return replace(shared, commit=None, dirty=False, release="")


def _controls(old: Pair, new: Pair) -> Iterator[tuple[Entry, Entry]]:
    """Rivals that are the same in both releases, so that only the host can have changed them."""
    now = {entry.contender: entry for entry in new.entries}
    for entry in old.entries:
        other = now.get(entry.contender)
        same = other and (entry.version, entry.knobs_asked) == (other.version, other.knobs_asked)
        if same and not entry.is_engine:
            yield entry, other


def _spread(control: tuple[Entry, Entry]) -> float:
    return max(entry.train.spread for entry in control)


def _blocks(old: Entry, new: Entry, control: tuple[Entry, Entry] | None) -> list[Block]:
    times = [old.train_by_block, new.train_by_block, *(entry.train_by_block for entry in control or ())]
    shared = sorted(set.intersection(*(set(time) for time in times)))
    return [Block(*((time[number],) for time in times)) for number in shared if min(time[number] for time in times) > 0]
