"""What crossed the bus and what the host waited for, per transaction. Imports nothing of the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Entry:
    """Sums of one transaction.

    Attributes
    ----------
    bytes_up, bytes_down : int
        Copied to and from the device.
    copies : int
        In either direction, however many pieces one goes in.
    launches, replayed_launches, replays, syncs, allocations : int
        Kernel launches, those inside replayed graphs included; those alone; graphs replayed; times the host waited;
        buffers.
    device_seconds : float
        Of the kernels; 0 where the device does not time them.
    device_bytes : int
        That the timed kernels read and wrote in device memory, by the formulas in their headers.
    """

    bytes_up: int = 0
    bytes_down: int = 0
    copies: int = 0
    launches: int = 0
    replayed_launches: int = 0
    replays: int = 0
    syncs: int = 0
    allocations: int = 0
    device_seconds: float = 0.0
    device_bytes: int = 0


@dataclass
class Ledger:
    """A device's book; devices write, the profile reads.

    Attributes
    ----------
    entries : dict of Entry
        By transaction.
    kernels : Counter
        Launches by kernel, those inside replayed graphs included.
    kernel_seconds : dict of float
        Device seconds by kernel, where the device times them.
    kernel_bytes : dict of int
        What timed kernels read and wrote, of those whose headers tell.
    homes : dict of str
        Transactions of kernels that are replayed together with those of others; a kernel that is not named here
        belongs to whatever transaction launches it.
    transaction : str
        Where things are booked now.
    """

    entries: dict[str, Entry] = field(default_factory=dict)
    kernels: Counter[str] = field(default_factory=Counter)
    kernel_seconds: dict[str, float] = field(default_factory=dict)
    kernel_bytes: dict[str, int] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)
    transaction: str = "outside"
    _on_trial: bool = False

    @property
    def entry(self) -> Entry:
        """Where the current transaction is booked."""
        return self._entry_of(self.transaction)

    @contextmanager
    def during(self, transaction: str) -> Iterator[Entry]:
        """Book what happens inside under a transaction's name."""
        before, self.transaction = self.transaction, transaction
        try:
            yield self.entry
        finally:
            self.transaction = before

    @contextmanager
    def trials(self) -> Iterator[None]:
        """What is launched inside, and waited for, is no work: it counts for the transaction but not by kernel."""
        self._on_trial = True
        try:
            yield
        finally:
            self._on_trial = False

    def launched(self, kernels: Iterable[str], *, replayed: bool = False) -> None:
        """Book launches of kernels by name, one at a time or as one replayed graph."""
        for kernel in kernels:
            if not self._on_trial:
                self.kernels[kernel] += 1
            entry = self._entry_of(self.homes.get(kernel, self.transaction))
            entry.launches += 1
            entry.replayed_launches += replayed
        self.entry.replays += replayed

    def timed(self, kernel: str, seconds: float, transaction: str) -> None:
        """Book device seconds of one kernel that `transaction` launched."""
        if not self._on_trial:
            self.kernel_seconds[kernel] = self.kernel_seconds.get(kernel, 0.0) + seconds
        self._entry_of(self.homes.get(kernel, transaction)).device_seconds += seconds

    def moved(self, traffic: Mapping[str, int]) -> None:
        """Book bytes by kernel, of those that were timed."""
        for kernel in traffic.keys() & self.kernel_seconds.keys():
            self.kernel_bytes[kernel] = self.kernel_bytes.get(kernel, 0) + traffic[kernel]
            self._entry_of(self.homes.get(kernel, self.transaction)).device_bytes += traffic[kernel]

    def _entry_of(self, transaction: str) -> Entry:
        return self.entries.setdefault(transaction, Entry())
