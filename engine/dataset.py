"""Features, labels, weights and their bins, made once for many fits. May import columns, cuts, backends and errors."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from numbers import Integral
from typing import Any

import numpy as np

from engine.backends import Plane, open_backend
from engine.columns import Columns, Table
from engine.cuts import Cuts
from engine.errors import DataError, ParamError

FLOAT32_MAX = float(np.finfo(np.float32).max)


class Dataset:
    """Features with their cuts and, if given, labels and weights. Immutable, reusable, safe to share among threads.

    Parameters
    ----------
    X : ndarray, pandas.DataFrame, pyarrow.Table or polars.DataFrame, shape (n_rows, n_features)
        Floats, integers up to 2^53, booleans; NaN and null are missing. Floating-point NumPy input is not copied:
        do not change it while the data set lives.
    y : array-like, shape (n_rows,), optional
        Finite labels within float32.
    weight : array-like, shape (n_rows,), optional
        Finite, >= 0. Rows of weight zero are dropped before anything else is looked at.
    feature_names : sequence of str, optional
        Unique; default those of the table, else f0, f1, ...
    max_bin : int in [2, 65535]
        Value bins a feature at most.
    cuts_from : Dataset, optional
        Take its cuts and `max_bin`, as an eval set must.

    Attributes
    ----------
    columns : Columns
        Without the rows of weight zero; so are `label` and `weight`.
    label, weight : ndarray of float32, shape (n_rows,), or None
    cuts : Cuts
    max_bin : int
    owns_cuts : bool
        Whether the cuts were found in these rows rather than taken from another data set.

    Raises
    ------
    DataError
        Names the column or row, the value and the remedy.
    ParamError
        If `max_bin` is out of range.
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        weight: Any = None,
        feature_names: Sequence[str] | None = None,
        max_bin: int = 255,
        cuts_from: Dataset | None = None,
    ) -> None:
        _check_cut_source(max_bin, cuts_from)
        table = Table.of(X, feature_names)
        if cuts_from is not None:
            table = _named_alike(table, cuts_from)
        self.weight, keep = _weights(weight, table.n_rows)
        self.columns = table.columns(keep)
        self.label = _labels(y, table.n_rows, keep)
        self.owns_cuts = cuts_from is None
        self.max_bin = int(max_bin) if cuts_from is None else cuts_from.max_bin
        self.cuts = Cuts.find(self.columns, self.weight, self.max_bin) if cuts_from is None else cuts_from.cuts
        self._planes: dict[str, Plane] = {}
        self._lock = threading.Lock()

    @property
    def n_rows(self) -> int:
        """Number of rows of positive weight."""
        return self.columns.n_rows

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.columns)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One a feature, unique."""
        return self.columns.names

    def plane(self, device: str) -> Plane:
        """The bins as a device's backend keeps them; made on the first call, then shared by every fit.

        Raises
        ------
        DeviceUnavailable
            If the device cannot be opened here.
        """
        with self._lock:
            if device not in self._planes:
                with closing(open_backend(device)) as backend:
                    self._planes[device] = backend.ingest(self)
            return self._planes[device]

    def ingest(self, device: str = "cpu") -> Dataset:
        """Bin now what would be binned by the first fit on `device`; returns the data set itself."""
        self.plane(device)
        return self

    def __repr__(self) -> str:
        labelled = "labelled" if self.label is not None else "unlabelled"
        return f"<Dataset {self.n_rows} x {self.n_features}, {labelled}, max_bin={self.max_bin}>"


def _check_cut_source(max_bin: int, cuts_from: Dataset | None) -> None:
    if isinstance(max_bin, bool) or not isinstance(max_bin, Integral) or not 2 <= max_bin <= 65535:
        raise ParamError(f"max_bin={max_bin!r} must be an integer in [2, 65535]")
    if cuts_from is not None and not isinstance(cuts_from, Dataset):
        raise DataError(f"cuts_from must be an engine.Dataset, got {type(cuts_from).__name__}")


def _named_alike(table: Table, other: Dataset) -> Table:
    """Refuse other columns than those the cuts belong to; a table without names takes theirs."""
    if len(table.parts) != other.n_features:
        raise DataError(f"X has {len(table.parts)} columns, but the data of cuts_from has {other.n_features}")
    if not table.named or not other.columns.named:
        return Table(table.parts, other.feature_names, other.columns.named)
    for position, (own, expected) in enumerate(zip(table.names, other.feature_names, strict=True)):
        if own != expected:
            raise DataError(
                f"column {position} is '{own}', but in the data of cuts_from it is '{expected}': "
                "give the same columns in the same order"
            )
    return table


def _weights(weight: Any, n_rows: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Positive float32 weights of the rows that stay, and which rows those are (None: all of them)."""
    if weight is None:
        return None, None
    values = _vector("weight", weight, n_rows)
    rows = np.arange(n_rows)
    _refuse("weight", values, rows, ~np.isfinite(values), "must be finite")
    _refuse("weight", values, rows, values < 0, "must be >= 0")
    narrow = _to_float32("weight", values, rows)
    _refuse("weight", values, rows, (narrow == 0) & (values > 0), "is too small for float32: multiply all weights")
    keep = narrow > 0
    if keep.all():
        return narrow, None
    if not keep.any():
        raise DataError(f"all {n_rows} weights are zero: at least one row must count")
    return _read_only(narrow[keep]), keep


def _labels(y: Any, n_rows: int, keep: np.ndarray | None) -> np.ndarray | None:
    if y is None:
        return None
    values, rows = _vector("label", y, n_rows), np.arange(n_rows)
    if keep is not None:
        values, rows = values[keep], rows[keep]
    _refuse("label", values, rows, ~np.isfinite(values), "must be finite: drop the row or give it weight 0")
    return _to_float32("label", values, rows)


def _vector(name: str, given: Any, n_rows: int) -> np.ndarray:
    """One number a row, as a float32 or float64 array; masked and null values as NaN."""
    try:
        masked = np.ma.getmaskarray(given) if isinstance(given, np.ma.MaskedArray) else None
        values = np.asarray(given)
        if values.dtype.kind in "OUS" or values.dtype.kind == "f" and values.dtype.itemsize != 4:
            values = np.asarray(given, dtype=np.float64) if values.dtype.kind == "O" else values
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be an array of numbers: {error}") from None
    if values.ndim != 1 or len(values) != n_rows:
        remedy = ": ravel() flattens it" if values.size == n_rows else ""
        raise DataError(f"{name} must have shape ({n_rows},), one number a row of X, not {values.shape}{remedy}")
    if values.dtype.kind not in "biuf":
        raise DataError(f"{name} must be numbers, not {values.dtype}: encode it as numbers")
    if masked is not None and masked.any():
        values = values.astype(np.float64)
        values[masked] = np.nan
    return values


def _refuse(name: str, values: np.ndarray, rows: np.ndarray, bad: np.ndarray, rule: str) -> None:
    if bad.any():
        at = int(np.argmax(bad))
        raise DataError(
            f"{name} of row {rows[at]} is {values[at]}: it {rule}"
            if rule.startswith("must")
            else f"{name} of row {rows[at]}, {values[at]}, {rule}"
        )


def _to_float32(name: str, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        narrow = values.astype(np.float32)
    _refuse(name, values, rows, np.isinf(narrow), f"must lie within float32, +-{FLOAT32_MAX:.8g}: rescale it")
    return _read_only(narrow)


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
