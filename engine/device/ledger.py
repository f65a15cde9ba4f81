"""What crossed the bus and what the host waited for, per transaction. Imports nothing of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Entry:
    """Sums of one transaction: bytes each way, kernel launches, graph replays, host synchronisations, allocations."""

    bytes_up: int = 0
    bytes_down: int = 0
    launches: int = 0
    replays: int = 0
    syncs: int = 0
    allocations: int = 0


@dataclass
class Ledger:
    """A device's book; devices write, the profile reads."""

    entries: dict[str, Entry] = field(default_factory=dict)
    transaction: str = "outside"

    @property
    def entry(self) -> Entry:
        """Where the current transaction is booked."""
        return self.entries.setdefault(self.transaction, Entry())

    @contextmanager
    def during(self, transaction: str) -> Iterator[Entry]:
        """Book what happens inside under a transaction's name."""
        before, self.transaction = self.transaction, transaction
        try:
            yield self.entry
        finally:
            self.transaction = before
