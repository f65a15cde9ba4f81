"""Feature columns in a device's memory: binned where they lie, seen by the host a chunk at a time. May import columns
and device.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np

from engine.columns import refuse_infinity
from engine.device.arrays import DeviceArray
from engine.device.gather import read_columns
from engine.device.ledger import Ledger


class ResidentColumns:
    """What `engine.columns.Columns` is, for float32 and float64 columns that a device can read.

    Parameters
    ----------
    columns : sequence of DeviceArray
        One a feature, of one length and place. Viewed, not copied.
    names, named
        As of `Columns`.

    Attributes
    ----------
    place : str
        Whose memory.
    """

    def __init__(self, columns: Sequence[DeviceArray], names: tuple[str, ...], named: bool) -> None:
        self.columns, self.names, self.named = tuple(columns), names, named
        self.place = self.columns[0].place
        self._arrays: tuple[np.ndarray, ...] | None = None
        self._ledger = Ledger()
        self._lock = threading.Lock()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0])

    @property
    def widths(self) -> list[int]:
        """Bytes of a value of each column."""
        return [column.dtype.itemsize for column in self.columns]

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """A copy on the host, made when it is first asked for and kept: for devices that work elsewhere."""
        with self._lock:
            if self._arrays is None:
                self._arrays = tuple(array for some in self._checked("ingest") for array in some)
            return self._arrays

    def on_host(self) -> Iterator[Sequence[np.ndarray]]:
        """Neighbouring columns together, every value checked; nothing is kept.

        Raises
        ------
        DataError
            Names the column and row of an infinity.
        """
        return self._checked("cuts")

    def check(self) -> None:
        """Refuse infinities, for which every value has to be seen once."""
        for _ in self.on_host():
            pass

    def unchecked(self) -> list[np.ndarray]:
        """A copy on the host that may hold infinities."""
        return [array for some in read_columns(self.columns, self._ledger, "ingest") for array in some]

    def traffic(self) -> Ledger:
        """The ledger of what has come down since this was last asked."""
        ledger, self._ledger = self._ledger, Ledger()
        return ledger

    def _checked(self, transaction: str) -> Iterator[Sequence[np.ndarray]]:
        first = 0
        with closing(read_columns(self.columns, self._ledger, transaction)) as chunks:
            for arrays in chunks:
                refuse_infinity(arrays, self.names[first:])
                yield arrays
                first += len(arrays)

    def __len__(self) -> int:
        return len(self.columns)
