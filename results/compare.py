"""Two commits from their rows: which may be compared, in which blocks, with what verdict. May import series, verdict.

Only rows of one host, work and contender are set against each other; where there are none, the refusal says why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from results.pairs import PAIRED
from results.regressions import EXACT, moved_phases
from results.schema import Row
from results.series import Cell, measured
from results.verdict import BAND, Block, Verdict, judge


class NotComparableError(ValueError):
    """The rows of two commits cannot be set against each other; the message says why and what to run."""


@dataclass(frozen=True)
class Comparison:
    """One cell of two commits.

    Attributes
    ----------
    cell : Cell
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
    of_a, of_b = (_by_cell(rows_of(rows, commit), measure) for commit in (a, b))
    if not of_a or not of_b:
        without = [commit[:10] for commit, found in ((a, of_a), (b, of_b)) if not found]
        raise NotComparableError(f"no valid row of an unchanged tree at {' and '.join(without)}; measure it first")
    shared = [cell for cell in of_a if cell in of_b]
    if not shared:
        raise NotComparableError(_why_apart(list(of_a), list(of_b)))
    compared = [_compare(cell, of_a, of_b, measure, control, band, last) for cell in shared]
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


def _compare(
    cell: Cell,
    of_a: dict[Cell, list[Row]],
    of_b: dict[Cell, list[Row]],
    measure: str,
    control: str | None,
    band: float,
    last: bool,
) -> Comparison:
    rows_a, rows_b = of_a[cell], of_b[cell]
    named = PAIRED.get(rows_a[0].growth) if control == "paired" else control
    beside = next((other for other in of_a if _is_control(other, cell, named) and other in of_b), None)
    if control not in (None, "paired", cell.contender) and beside is None:
        raise NotComparableError(f"no rows of the control {named} beside {cell} at both commits")
    blocks = _blocks(rows_a, rows_b, of_a.get(beside, []), of_b.get(beside, []), measure)
    return Comparison(
        cell,
        beside.contender if beside else None,
        judge(blocks, band, last=last),
        moved_phases([row.phases for row in rows_a], [row.phases for row in rows_b]),
        tuple(_changed(rows_a, rows_b)),
    )


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
