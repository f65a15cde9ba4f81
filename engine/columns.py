"""Features as float columns, named and checked. May import the native module, NumPy, tables, cores, device, errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import _native
from engine.cores import usable_cores
from engine.device.arrays import DeviceArray
from engine.errors import DataError
from engine.tables import Part, take_apart

if TYPE_CHECKING:
    from engine.resident_columns import ResidentColumns

EXACT_INTEGER = 2**53
"""The largest magnitude up to which float64 holds every integer."""

MAX_ROWS = 2**31 - 1
"""Backends number rows by int32."""

_REMEDIES = {
    "O": "holds Python objects: encode it as numbers",
    "U": "holds strings: encode it as numbers",
    "S": "holds bytes: encode it as numbers",
    "T": "holds strings: encode it as numbers",
    "M": "holds dates: encode them as numbers, for instance days since a reference date",
    "m": "holds durations: encode them as numbers, for instance seconds",
    "c": "is complex: pass the real and the imaginary part as two columns",
    "V": "is a structured type: pass its fields as columns",
}


@dataclass(frozen=True, eq=False)
class Columns:
    """Feature columns, read-only.

    Attributes
    ----------
    arrays : tuple of ndarray
        One a feature, each one-dimensional float32 or float64 of any stride, NaN where a value is missing.
        Floating-point input is viewed, not copied: change it later and you change what is trained on.
    names : tuple of str
        Unique.
    named : bool
        Whether the caller or the table gave the names; else they are f0, f1, ...
    """

    arrays: tuple[np.ndarray, ...]
    names: tuple[str, ...]
    named: bool
    place = None  # not in a device's memory

    @classmethod
    def of(cls, X: Any, names: Sequence[str] | None = None) -> Columns | ResidentColumns:
        """Columns of a table; where they lie, if that is a device's memory.

        Parameters
        ----------
        X : ndarray, pandas.DataFrame, pyarrow.Table, polars.DataFrame, GPU array or sequence of rows
            Shape (n_rows, n_features) of floats, integers or booleans. NaN, null and masked values are missing.
        names : sequence of str, optional
            Override those of the table.

        Raises
        ------
        DataError
            Names the column, and the row of an infinity, and says what to do instead.
        """
        return Table.of(X, names).columns()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.arrays[0])

    @property
    def widths(self) -> list[int]:
        """Bytes of a value of each column."""
        return [array.itemsize for array in self.arrays]

    def on_host(self) -> Iterable[Sequence[np.ndarray]]:
        """Neighbouring columns together, as many as the host can see at a time: here all."""
        return [self.arrays]

    def check(self) -> None:
        """Refuse infinities: whoever made these columns has done so."""

    def traffic(self) -> None:
        """The ledger of what has crossed a bus: there is none."""

    def __len__(self) -> int:
        return len(self.arrays)


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns that nobody has looked into yet: so that rows of weight zero can leave before anything is checked.

    Attributes
    ----------
    parts : tuple of Part
        One a feature.
    names, named
        As in `Columns`.
    """

    parts: tuple[Part, ...]
    names: tuple[str, ...]
    named: bool

    @classmethod
    def of(cls, X: Any, names: Sequence[str] | None = None) -> Table:
        """Take `X` apart; see `Columns.of`."""
        parts, own_names = take_apart(X)
        if not parts:
            raise DataError("X has 0 columns: at least one is needed")
        n_rows = len(parts[0].values)
        if n_rows == 0:
            raise DataError("X has 0 rows: at least one is needed")
        if n_rows > MAX_ROWS:
            raise DataError(f"X has {n_rows} rows, more than {MAX_ROWS}: train on a sample of them")
        chosen = own_names if names is None else names
        return cls(tuple(parts), _checked_names(chosen, len(parts)), chosen is not None)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.parts[0].values)

    def columns(self, keep: np.ndarray | None = None) -> Columns | ResidentColumns:
        """The rows where the boolean `keep` is true (None: all), as floats, every value checked.

        Columns in a device's memory stay there if all their rows do; they are checked when the host sees them.
        """
        parts = self.parts
        if isinstance(parts[0].values, DeviceArray):
            from engine.resident_columns import ResidentColumns

            resident = ResidentColumns([part.values for part in parts], self.names, self.named)
            if keep is None:
                return resident
            parts = [Part(array, None) for array in resident.unchecked()]
        if keep is not None:
            parts = [part.keep(keep) for part in parts]
        arrays = tuple(_as_float(part, name) for part, name in zip(parts, self.names, strict=True))
        refuse_infinity(arrays, self.names, keep)
        return Columns(arrays, self.names, self.named)


def refuse_infinity(arrays: Sequence[np.ndarray], names: Sequence[str], keep: np.ndarray | None = None) -> None:
    """Raise a DataError that names the first infinity's column and row, counted before rows were dropped by `keep`."""
    infinity = _native.find_infinity(arrays, usable_cores())
    if infinity is None:
        return
    feature, row = infinity
    at = row if keep is None else np.flatnonzero(keep)[row]
    raise DataError(
        f"column '{names[feature]}', row {at} is {arrays[feature][row]}: infinity is refused; "
        "give a finite number, or NaN for a missing value"
    )


def _checked_names(names: Iterable[Any] | None, n_features: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"f{feature}" for feature in range(n_features))
    if isinstance(names, str):
        raise DataError(f"feature_names must be a sequence of strings, not the single string {names!r}")
    names = tuple(names)
    if len(names) != n_features:
        raise DataError(f"{len(names)} feature names for {n_features} columns: give one a column")
    seen = set()
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"feature name {name!r} is not a string: name every column by a string, or none")
        if name in seen:
            raise DataError(f"feature name '{name}' is given to two columns: names must be unique")
        seen.add(name)
    return tuple(map(str, names))


def _as_float(part: Part, name: str) -> np.ndarray:
    """One column as a read-only aligned float32 or float64 array, missing values as NaN."""
    array = _convert(part.values, name)
    if part.missing is not None and part.missing.any():
        array = array.copy()
        array[part.missing] = np.nan
    array = array.view()
    array.flags.writeable = False
    return array


def _convert(values: np.ndarray, name: str) -> np.ndarray:
    """float32 where that is exact, else float64 where that is exact, else refused."""
    dtype = values.dtype
    if dtype.kind in "biu":
        if dtype.itemsize == 8:
            _check_exact(values, name)
        return values.astype(np.float32 if dtype.itemsize <= 2 else np.float64)
    if dtype.kind != "f":
        raise DataError(f"column '{name}' {_REMEDIES.get(dtype.kind, 'is not made of numbers')} (dtype {dtype})")
    if dtype.itemsize > 8:
        raise DataError(f"column '{name}' is {dtype}, wider than float64: convert it with astype(numpy.float64)")
    values = values.astype(np.float32 if dtype.itemsize == 2 else dtype.newbyteorder("="), copy=False)
    return values if values.flags.aligned else values.copy()


def _check_exact(values: np.ndarray, name: str) -> None:
    too_large = values > EXACT_INTEGER
    if values.dtype.kind == "i":
        too_large |= values < -EXACT_INTEGER
    if too_large.any():
        row = int(np.argmax(too_large))
        raise DataError(
            f"column '{name}' holds {values[row]}, beyond 2^53, where neighbouring integers become one float64: "
            "subtract an offset, or encode it as several columns"
        )
