"""From results/local to results/records: which rows go, and the copy. May import results.store.

Text is copied as it stands, so that keys this build does not know survive, and rows of every status go along.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from results.store import Store, Stored


@dataclass(frozen=True)
class Choice:
    """What goes, in file order, and how many rows stay for which reason."""

    rows: tuple[Stored, ...]
    left_out: Counter[str]


def choose(
    stored: Iterable[Stored],
    records: Store,
    *,
    release: str | None = None,
    commit: str | None = None,
    dirty: bool = False,
) -> Choice:
    """Choose the rows that are not in `records` yet.

    Parameters
    ----------
    release, commit : str, optional
        Only this release; only commits that begin so.
    dirty : bool
        Also rows measured on a changed tree, which nobody can check out again.
    """
    published = {item.text for item in records.read().stored}
    left_out: Counter[str] = Counter()
    chosen = []
    for item in stored:
        row = item.row
        if release not in (None, row.release) or not (row.commit or "").startswith(commit or ""):
            left_out["of another release or commit"] += 1
        elif item.text in published:
            left_out["already published"] += 1
        elif (row.dirty or row.commit is None) and not dirty:
            left_out["measured on a tree that is no commit; measure again on a clean one, or add --dirty"] += 1
        else:
            chosen.append(item)
            published.add(item.text)
    return Choice(tuple(chosen), left_out)


def copy(rows: Iterable[Stored], records: Store) -> None:
    """Append rows to `records`, each durably.

    Raises
    ------
    StoreError
        If one cannot be written; those before it are, and a second copy leaves them out.
    """
    for item in rows:
        records.append_text(item.row.ladder, item.text)
