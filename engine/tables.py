"""Takes tables of NumPy, pandas, pyarrow, polars and their like apart into columns. May import NumPy, pyarrow, arrays,
device.

A column comes out as it is stored, without a copy where the library allows it; `engine.columns` turns it into floats.
pyarrow is imported only for tables that are its own or pass through it: polars, pandas extension types, DuckDB.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.arrays import as_numpy, is_array, on_device
from engine.device.arrays import DeviceArray
from engine.errors import DataError


class Part(NamedTuple):
    """One column: its values, of any dtype, and where they are missing (None: nowhere but at NaN).

    Values in a device's memory are such that kernels can read them there.
    """

    values: np.ndarray | DeviceArray
    missing: np.ndarray | None

    def keep(self, rows: np.ndarray) -> Part:
        """Only the rows where the boolean array is true."""
        return Part(self.values[rows], None if self.missing is None else self.missing[rows])


def take_apart(X: Any) -> tuple[list[Part], Sequence[Any] | None]:
    """Columns of a table, and the names that it gives them; None if it gives none.

    Raises
    ------
    DataError
        If it is no table of a kind known here; names a column that cannot hold numbers.
    """
    library = type(X).__module__.partition(".")[0]
    if library == "scipy" and hasattr(X, "toarray"):
        raise DataError(f"X is sparse ({type(X).__name__}): pass X.toarray(), with NaN where a value is missing")
    if library == "pandas":
        return _from_pandas(X)
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return _from_arrow(X)
    return _from_array(X, library), None


def _from_array(X: Any, library: str) -> list[Part]:
    if not isinstance(X, np.ndarray):
        if not is_array(X):
            remedy = "collect() it first" if hasattr(X, "collect") else "convert it to one of them"
            known = "a NumPy array or a pandas, pyarrow or polars table"
            raise DataError(f"X must be {known}, not {library}.{type(X).__name__}: {remedy}")
        there = on_device("X", X, "a NumPy array")
        X = as_numpy("X", X, "a NumPy array") if there is None else there
    if X.ndim != 2:
        remedy = "reshape(-1, 1) makes it one column" if X.ndim == 1 else "give one row an example"
        raise DataError(f"X must have two dimensions, rows and columns, not shape {X.shape}: {remedy}")
    if isinstance(X, DeviceArray):
        if X.is_readable:
            return [Part(X.column(feature), None) for feature in range(X.shape[1])]
        X = X.fetch()
    if isinstance(X, np.ma.MaskedArray):
        values, missing = np.ma.getdata(X), np.ma.getmaskarray(X)
        return [Part(values[:, feature], missing[:, feature]) for feature in range(X.shape[1])]
    values = X.view(np.ndarray)
    return [Part(values[:, feature], None) for feature in range(X.shape[1])]


def _from_pandas(X: Any) -> tuple[list[Part], Sequence[Any] | None]:
    if getattr(X, "ndim", 0) != 2:
        raise DataError(f"X is a pandas {type(X).__name__}: to_frame() makes a table of it")
    labels = list(X.columns)
    parts = [_of_series(X.iloc[:, feature], label) for feature, label in enumerate(labels)]
    # Columns that nobody named are numbered 0, 1, ...; a mixture is left for the names check to refuse.
    return parts, labels if any(isinstance(label, str) for label in labels) else None


def _of_series(series: Any, name: Any) -> Part:
    if isinstance(series.dtype, np.dtype):
        return Part(series.to_numpy(), None)
    if hasattr(series, "sparse"):
        raise DataError(f"column '{name}' is sparse: make it dense with .sparse.to_dense()")
    import pyarrow

    try:
        array = pyarrow.array(series.array, from_pandas=True)
    except (TypeError, ValueError, pyarrow.ArrowException):
        raise DataError(f"column '{name}' is {series.dtype}: encode it as numbers") from None
    return _of_arrow(array, name)


def _from_arrow(X: Any) -> tuple[list[Part], Sequence[str]]:
    import pyarrow

    try:
        table = X if isinstance(X, pyarrow.Table) else pyarrow.table(X)
    except (TypeError, ValueError, pyarrow.ArrowException):
        raise DataError(
            f"X is a single {type(X).__name__}, not a table: give a table with a column a feature"
        ) from None
    names = table.column_names
    return [_of_arrow(column, name) for column, name in zip(table.columns, names, strict=True)], names


def _of_arrow(column: Any, name: Any) -> Part:
    """A pyarrow Array or ChunkedArray; nulls become zeros that are marked as missing."""
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_null(kind):
        return Part(np.zeros(len(column), np.float32), np.ones(len(column), bool))
    if not (types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)):
        what = "holds categories" if types.is_dictionary(kind) else f"is of type {kind}"
        raise DataError(f"column '{name}' {what}: encode it as numbers")
    missing = None
    if column.null_count:
        missing = _to_numpy(column.is_null())
        column = column.fill_null(pyarrow.scalar(0).cast(kind))
    return Part(_to_numpy(column), missing)


def _to_numpy(column: Any) -> np.ndarray:
    import pyarrow

    # Only an Array asks whether it may copy; a ChunkedArray joins its chunks without asking.
    return column.to_numpy() if isinstance(column, pyarrow.ChunkedArray) else column.to_numpy(zero_copy_only=False)
