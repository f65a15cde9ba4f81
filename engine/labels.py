"""Labels and weights as checked float32 vectors. May import NumPy, arrays and errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.arrays import as_numpy
from engine.errors import DataError


def check_weights(weight: Any, n_rows: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Weights of the rows that count, and which rows those are.

    Parameters
    ----------
    weight : array-like, shape (n_rows,), or None
        Finite, >= 0.

    Returns
    -------
    weight : ndarray of float32, shape (n_kept,), or None
        All positive, read-only; None if none were given.
    keep : ndarray of bool, shape (n_rows,), or None
        True where the weight is positive; None if every row stays.

    Raises
    ------
    DataError
        Names the row and the value.
    """
    if weight is None:
        return None, None
    rows = np.arange(n_rows)
    values = _vector("weight", weight, n_rows)
    _refuse("weight", values, rows, ~np.isfinite(values), "it must be finite")
    _refuse("weight", values, rows, values < 0, "it must be >= 0")
    narrow = _to_float32("weight", values, rows)
    _refuse("weight", values, rows, (narrow == 0) & (values > 0), "float32 makes it 0; scale all weights up")
    keep = narrow > 0
    if not keep.any():
        raise DataError(f"all {n_rows} weights are 0: at least one row must count")
    return (narrow, None) if keep.all() else (_read_only(narrow[keep]), keep)


def check_labels(y: Any, n_rows: int, keep: np.ndarray | None) -> np.ndarray | None:
    """Labels of the rows that count, float32 and read-only; None if none were given.

    Parameters
    ----------
    y : array-like, shape (n_rows,), or None
        Finite and within float32 wherever `keep` is true.
    keep : ndarray of bool, shape (n_rows,), or None
        From `check_weights`.

    Raises
    ------
    DataError
        Names the row and the value.
    """
    if y is None:
        return None
    values, rows = _vector("label", y, n_rows), np.arange(n_rows)
    if keep is not None:
        values, rows = values[keep], rows[keep]
    _refuse("label", values, rows, ~np.isfinite(values), "it must be finite; drop the row or give it weight 0")
    return _to_float32("label", values, rows)


def _vector(name: str, given: Any, n_rows: int) -> np.ndarray:
    """One real number a row; masked and null values as NaN."""
    masked = isinstance(given, np.ma.MaskedArray)
    values = as_numpy(name, given)
    if values.shape != (n_rows,):
        remedy = ": ravel() flattens it" if values.size == n_rows and values.ndim > 1 else ""
        raise DataError(f"{name} must have shape ({n_rows},), one number a row of X, not {values.shape}{remedy}")
    if values.dtype.kind == "O":
        values = np.array([_number(name, row, value) for row, value in enumerate(values)])
    if values.dtype.kind not in "biuf":
        raise DataError(f"{name} must be numbers, not {values.dtype}: encode it as numbers")
    if masked and np.ma.getmaskarray(given).any():
        values = values.astype(np.float64)
        values[np.ma.getmaskarray(given)] = np.nan
    return values


def _number(name: str, row: int, value: Any) -> float:
    try:
        return float("nan") if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{name} of row {row} is {value!r}: it must be a finite number") from None


def _to_float32(name: str, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        narrow = values.astype(np.float32)
    limit = np.finfo(np.float32).max
    _refuse(name, values, rows, np.isinf(narrow), f"float32 ends at {limit:.8g}; rescale it")
    return _read_only(narrow)


def _refuse(name: str, values: np.ndarray, rows: np.ndarray, bad: np.ndarray, remedy: str) -> None:
    if bad.any():
        at = int(np.argmax(bad))
        raise DataError(f"{name} of row {rows[at]} is {values[at]}: {remedy}")


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
