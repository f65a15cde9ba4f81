"""A table of features as float columns. May import the native module, NumPy, pyarrow and errors.

The columns are borrowed from NumPy, pandas, pyarrow or polars wherever they hold floats. pyarrow is imported only for tables that are its own or pass through it (polars, pandas extension types).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine import _native
from engine.errors import DataError

EXACT_INTEGER = 2**53
"""The largest magnitude up to which float64 holds every integer."""

MAX_ROWS = 2**31 - 1
"""Rows are numbered by int32 inside the backends."""

_REMEDIES = {
    "O": "holds Python objects: encode it as numbers",
    "U": "holds strings: encode it as numbers",
    "S": "holds bytes: encode it as numbers",
    "T": "holds strings: encode it as numbers",
    "M": "holds dates: encode them as numbers, for instance days since a reference date",
    "m": "holds durations: encode them as numbers, for instance seconds",
    "c": "is complex: pass the real and imaginary parts as two columns",
    "V": "is a structured type: pass its fields as columns",
}


@dataclass(frozen=True, eq=False)
class Columns:
    """Feature columns, read-only.

    Attributes
    ----------
    arrays : tuple of ndarray
        One a feature, each one-dimensional float32 or float64 of any stride. Floating-point NumPy input is viewed, not
        copied: change it later and you change what is trained on.
    names : tuple of str
        Unique.
    named : bool
        Whether the caller or the table gave the names; else they are f0, f1, ...
    """

    arrays: tuple[np.ndarray, ...]
    names: tuple[str, ...]
    named: bool

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.arrays[0])

    @classmethod
    def of(cls, X: Any, names: Sequence[str] | None = None) -> Columns:
        """Columns of a table.

        Parameters
        ----------
        X : ndarray, pandas.DataFrame, pyarrow.Table, polars.DataFrame or sequence of rows
            Shape (n_rows, n_features) of floats, integers or booleans. NaN, null and masked values are missing.
        names : sequence of str, optional
            Override those of the table.

        Raises
        ------
        DataError
            Names the column, and the row of an infinity, and says what to do instead.
        """
        return Table.of(X, names).columns()

    def __len__(self) -> int:
        return len(self.arrays)


@dataclass(frozen=True, eq=False)
class Table:
    """A table taken apart but not yet looked at: so that rows of weight zero can leave before anything is checked.

    Attributes
    ----------
    parts : tuple
        One a feature: a NumPy array (masked ones included) or a pyarrow ChunkedArray.
    names, named
        As in `Columns`.
    """

    parts: tuple[Any, ...]
    names: tuple[str, ...]
    named: bool

    @classmethod
    def of(cls, X: Any, names: Sequence[str] | None = None) -> Table:
        """Take `X` apart; see `Columns.of`."""
        parts, own_names = _take_apart(X)
        if not parts or len(parts[0]) == 0:
            raise DataError(
                f"X has {len(parts[0]) if parts else 0} rows and {len(parts)} columns: give at least one of each"
            )
        if len(parts[0]) > MAX_ROWS:
            raise DataError(f"X has {len(parts[0])} rows, at most {MAX_ROWS} can be trained on: take a sample of them")
        chosen = own_names if names is None else names
        return cls(tuple(parts), _checked_names(chosen, len(parts)), chosen is not None)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.parts[0])

    def columns(self, keep: np.ndarray | None = None) -> Columns:
        """Convert to float columns, of the rows where the boolean `keep` is true, and check every value."""
        arrays = []
        for name, part in zip(self.names, self.parts, strict=True):
            array = _as_float(
                part if keep is None else part[keep] if isinstance(part, np.ndarray) else part.filter(keep), name
            )
            array = array.view()
            array.flags.writeable = False
            arrays.append(array)
        infinity = _native.find_infinity(arrays)
        if infinity is not None:
            feature, row = infinity
            value = arrays[feature][row]
            row = row if keep is None else int(np.flatnonzero(keep)[row])
            raise DataError(
                f"column '{self.names[feature]}', row {row} is {value}: infinity is refused; "
                "use NaN for a missing value or a finite number"
            )
        return Columns(tuple(arrays), self.names, self.named)


def _take_apart(X: Any) -> tuple[list[Any], Sequence[str] | None]:
    """Columns of whatever type, and the names that the table itself gives them."""
    library = type(X).__module__.partition(".")[0]
    if library == "scipy" and hasattr(X, "toarray"):
        raise DataError(f"X is sparse ({type(X).__name__}): pass X.toarray(), with NaN where a value is missing")
    if library == "pandas":
        return _take_apart_pandas(X)
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return _take_apart_arrow(X)
    if isinstance(X, (list, tuple)):
        try:
            X = np.asarray(X)
        except ValueError as error:
            raise DataError(f"X is no table: {error}") from None
    if not isinstance(X, np.ndarray):
        what = f"{library}.{type(X).__name__}"
        remedy = "collect() it first" if hasattr(X, "collect") else "convert it to one of them"
        raise DataError(f"X must be a NumPy array, a pandas, pyarrow or polars table, not {what}: {remedy}")
    if X.ndim != 2:
        remedy = "reshape(-1, 1) makes it one column" if X.ndim == 1 else "give one row an example"
        raise DataError(f"X must have two dimensions, rows and columns, not shape {X.shape}: {remedy}")
    array = X.view(np.ma.MaskedArray) if isinstance(X, np.ma.MaskedArray) else X.view(np.ndarray)
    return [array[:, feature] for feature in range(array.shape[1])], None


def _take_apart_pandas(X: Any) -> tuple[list[Any], Sequence[str] | None]:
    if getattr(X, "ndim", 0) != 2:
        raise DataError(f"X is a pandas {type(X).__name__}: to_frame() makes a table of it")
    parts = [_pandas_part(X.iloc[:, feature], X.columns[feature]) for feature in range(X.shape[1])]
    labels = list(X.columns)
    # Columns that nobody named are numbered 0, 1, ...; a mixture is left for the names check to refuse.
    return parts, labels if any(isinstance(label, str) for label in labels) else None


def _pandas_part(series: Any, name: Any) -> Any:
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return series.to_numpy()
    kind = type(dtype).__name__
    if kind == "SparseDtype":
        raise DataError(f"column '{name}' is sparse: make it dense with .sparse.to_dense()")
    if kind in ("CategoricalDtype", "StringDtype"):
        raise DataError(f"column '{name}' holds {'categories' if kind[0] == 'C' else 'strings'}: encode it as numbers")
    if not getattr(dtype, "_is_numeric", False) and not getattr(dtype, "_is_boolean", False):
        raise DataError(f"column '{name}' is {dtype}: encode it as numbers")
    import pyarrow

    return pyarrow.chunked_array([series.array.__arrow_array__()])


def _take_apart_arrow(X: Any) -> tuple[list[Any], Sequence[str]]:
    import pyarrow

    try:
        table = X if isinstance(X, pyarrow.Table) else pyarrow.table(X)
    except (TypeError, ValueError, pyarrow.ArrowInvalid):
        raise DataError(
            f"X is a single {type(X).__name__}, not a table: give a table with a column a feature"
        ) from None
    return table.columns, table.column_names


def _checked_names(names: Iterable[Any] | None, n_features: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"f{feature}" for feature in range(n_features))
    if isinstance(names, str):
        raise DataError(f"feature_names must be a sequence of strings, not the single string {names!r}")
    names = tuple(names)
    if len(names) != n_features:
        raise DataError(f"{len(names)} feature names for {n_features} columns: give one a column")
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"feature name {name!r} is not a string: name every column by a string, or none")
    if len(set(names)) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise DataError(f"feature name '{twice}' is given to two columns: names must be unique")
    return tuple(str(name) for name in names)


def _as_float(part: Any, name: str) -> np.ndarray:
    """One column as an aligned float32 or float64 array, missing values as NaN."""
    if isinstance(part, np.ma.MaskedArray):
        missing, values = np.ma.getmaskarray(part), part.filled(0)
    elif isinstance(part, np.ndarray):
        missing, values = None, part
    else:
        missing, values = _from_arrow(part, name)
    array = _convert(values, name)
    if missing is not None and missing.any():
        array = np.array(array)
        array[missing] = np.nan
    return array


def _from_arrow(column: Any, name: str) -> tuple[np.ndarray | None, np.ndarray]:
    """Where a pyarrow column is null, and its values with zero there."""
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_null(kind):
        return np.ones(len(column), bool), np.zeros(len(column), np.float32)
    if not (types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)):
        raise DataError(f"column '{name}' is {kind}: encode it as numbers")
    if column.null_count == 0:
        return None, column.to_numpy()
    missing = column.is_null().to_numpy()
    return missing, column.fill_null(pyarrow.scalar(0).cast(kind)).to_numpy()


def _convert(values: np.ndarray, name: str) -> np.ndarray:
    dtype = values.dtype
    if dtype.kind in "biu":
        if dtype.itemsize == 8:
            _check_exact(values, name)
        return values.astype(np.float32 if dtype.itemsize <= 2 else np.float64)
    if dtype.kind != "f":
        raise DataError(f"column '{name}' {_REMEDIES.get(dtype.kind, 'is not a column of numbers')} (dtype {dtype})")
    if dtype.itemsize > 8:
        raise DataError(f"column '{name}' is {dtype}, wider than float64: convert it with astype(numpy.float64)")
    wanted = np.float32 if dtype.itemsize == 2 else dtype.newbyteorder("=")
    values = values.astype(wanted, copy=False)
    return values if values.flags.aligned else values.copy()


def _check_exact(values: np.ndarray, name: str) -> None:
    too_large = (
        (values > EXACT_INTEGER) | (values < -EXACT_INTEGER) if values.dtype.kind == "i" else values > EXACT_INTEGER
    )
    if too_large.any():
        row = int(np.argmax(too_large))
        raise DataError(
            f"column '{name}' holds {values[row]}, beyond 2^53, where neighbouring integers become one float64: "
            "subtract an offset, or encode it as several columns"
        )
