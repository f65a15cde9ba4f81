"""Two commits from their rows: which may be compared, in which blocks, with what verdict. May import series, verdict.

Only rows of one host, work and contender are set against each other; where there are none, the refusal says why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from results.pairs import PAIRED
from results.regressions import EXACT, moved_phases
from results.schema import Row
from results.series import Cell, families, measured
from results.verdict import BAND, Block, Verdict, judge


class NotComparableError(ValueError):
    """The rows of two commits cannot be set against each other; the message says why and what to run."""


@dataclass(frozen=True)
class Comparison:
    """One cell of two commits; where repeats see different data in turn, their cells together.

    Attributes
    ----------
    cell : Cell
        The first of them.
    control : str or None
    verdict : Verdict
    moved : tuple of (str, float)
        Phases by their share of the change.
    changed : tuple of (str, object, object)
        Counts, bits and quality that are one thing in every row of A and another in every row of B.
    """

    cell: Cell
    control: str | None
    verdict: Verdict
    moved: tuple[tuple[str, float], ...]
    changed: tuple[tuple[str, object, object], ...]


def compare_rows(
    rows: Iterable[Row],
    a: str,
    b: str,
    *,
    measure: str = "train_s",
    control: str | None = "paired",
    band: float = BAND,
    last: bool = True,
) -> list[Comparison]:
    """Judge every cell that both commits have rows of.

    Parameters
    ----------
    rows : iterable of Row
    a, b : str
        Full hashes.
    measure : str
        A time out of `results.series.TIMES`, or ``fit_s``.
    control : str or None
        A contender; "paired" is the rival of the growth's pair where it was measured under both, else none.
    band : float
    last : bool
        See `results.verdict.judge`.

    Raises
    ------
    NotComparableError
        If no cell has rows of both commits.
    """
    rows = list(rows)
    of_a, of_b = (_by_cell(rows_of(rows, commit), measure) for commit in (a, b))
    if not of_a or not of_b:
        without = [commit[:10] for commit, found in ((a, of_a), (b, of_b)) if not found]
        raise NotComparableError(f"no valid row of an unchanged tree at {' and '.join(without)}; measure it first")
    shared = _together([cell for cell in of_a if cell in of_b], families(rows))
    if not shared:
        raise NotComparableError(_why_apart(list(of_a), list(of_b)))
    compared = [_compare(cells, of_a, of_b, measure, control, band, last) for cells in shared]
    controls = {one.control for one in compared}
    return [one for one in compared if one.cell.contender not in controls] or compared


def rows_of(rows: Iterable[Row], commit: str) -> list[Row]:
    """Those of a commit that may be compared: an edited tree is another version."""
    return [row for row in rows if row.commit == commit and not row.dirty and row.status == "ok" and row.valid]


def _by_cell(rows: list[Row], measure: str) -> dict[Cell, list[Row]]:
    cells = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.ts):
        if measured(row, measure):
            cells[Cell.of(row)].append(row)
    return dict(cells)


def _together(cells: list[Cell], families: Mapping[str, str]) -> list[list[Cell]]:
    """Cells that differ only in which data set of one family their repeats saw: their blocks are one comparison."""
    groups: dict[Cell, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.within(families), []).append(cell)
    return list(groups.values())


def _compare(
    cells: list[Cell],
    of_a: dict[Cell, list[Row]],
    of_b: dict[Cell, list[Row]],
    measure: str,
    control: str | None,
    band: float,
    last: bool,
) -> Comparison:
    cell, growth = cells[0], of_a[cells[0]][0].growth
    named = PAIRED.get(growth) if control == "paired" else control
    beside = {one: _control(one, of_a, of_b, named) for one in cells}
    if None in beside.values():  # a control is one of every block, or of none
        if control not in (None, "paired", cell.contender):
            raise NotComparableError(f"no rows of the control {named} beside {cell} at both commits")
        beside = dict.fromkeys(cells)
    blocks = [
        block
        for one, other in beside.items()
        for block in _blocks(of_a[one], of_b[one], of_a.get(other, []), of_b.get(other, []), measure)
    ]
    phases = ([row.phases for one in cells for row in of[one]] for of in (of_a, of_b))
    changed = [found for one in cells for found in _changed(of_a[one], of_b[one])]
    return Comparison(
        cell,
        named if beside[cell] else None,
        judge(blocks, band, last=last),
        moved_phases(*phases),
        tuple({found[0]: found for found in reversed(changed)}.values())[::-1],
    )


def _control(cell: Cell, of_a: dict[Cell, list[Row]], of_b: dict[Cell, list[Row]], named: str | None) -> Cell | None:
    return next((other for other in of_a if _is_control(other, cell, named) and other in of_b), None)


def _is_control(other: Cell, cell: Cell, named: str | None) -> bool:
    return other.contender == named != cell.contender and set(cell.difference(other)) <= {"contender", "knobs"}


def _blocks(
    rows_a: list[Row], rows_b: list[Row], control_a: list[Row], control_b: list[Row], measure: str
) -> list[Block]:
    """Pair the blocks of both in order of time; a block that lacks a part is left out."""
    parts = [_in_blocks(rows, measure) for rows in (rows_a, rows_b, control_a, control_b)]
    if not (control_a and control_b):
        return [Block(a, b) for a, b in zip(*parts[:2], strict=False)]
    return [Block(*together) for together in zip(*parts, strict=False)]


def _in_blocks(rows: list[Row], measure: str) -> list[tuple[float, ...]]:
    """Times by run and block: a later run counts its blocks from the start again, and never mixes with an earlier."""
    blocks: dict[tuple[int, int], list[float]] = {}
    seen: dict[tuple[int, int], int] = {}
    for row in rows:
        place = (row.block, row.order)
        run = seen[place] = seen.get(place, -1) + 1
        blocks.setdefault((run, row.block), []).append(measured(row, measure))
    return [tuple(times) for _, times in sorted(blocks.items())]


def _changed(rows_a: list[Row], rows_b: list[Row]) -> Iterable[tuple[str, object, object]]:
    for measure in (*EXACT, "value"):
        old, new = ({measured(row, measure) for row in rows} - {None} for rows in (rows_a, rows_b))
        if len(old) == len(new) == 1 and old != new:
            yield measure, old.pop(), new.pop()


def _why_apart(cells_a: list[Cell], cells_b: list[Cell]) -> str:
    """What the nearest two cells differ in."""
    _, a, b = min(((len(a.difference(b)), a, b) for a in cells_a for b in cells_b), key=lambda item: item[0])
    if a.passport != b.passport and replace(a, passport=b.passport) == b:
        return (
            f"A was measured on host {a.passport}, B on {b.passport}: times of two passports say nothing about "
            "the code; measure both on one host: dyno results compare A B, without --stored"
        )
    differing = ", ".join(f"{name} ({getattr(a, name)} and {getattr(b, name)})" for name in a.difference(b))
    return f"no rows of both commits measure the same; the nearest two differ in {differing}"
