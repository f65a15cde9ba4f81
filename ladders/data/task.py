"""One supervised task as plain arrays, and its content hash. May import NumPy only."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

ARRAYS = ("X_train", "y_train", "X_test", "y_test")


class DataError(ValueError):
    """Data that are not made but had cannot be had, or are not what they should be."""


class Shape(NamedTuple):
    """Rows of the training and the test part, and columns."""

    train: int
    test: int
    columns: int

    @property
    def nbytes(self) -> int:
        """Of all four arrays."""
        return 4 * (self.train + self.test) * (self.columns + 1)


@dataclass(frozen=True, eq=False)
class Task:
    """What every contender is given: the same host arrays.

    Attributes
    ----------
    X_train, X_test : ndarray of float32, shape (n_rows, n_features)
        C order; NaN is missing.
    y_train, y_test : ndarray of float32, shape (n_rows,)
    feature_names : tuple of str
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    feature_names: tuple[str, ...]

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            X, y = getattr(self, f"X_{part}"), getattr(self, f"y_{part}")
            if X.dtype != np.float32 or y.dtype != np.float32 or not X.flags.c_contiguous:
                raise ValueError(f"the {part} part must be C-ordered float32, got {X.dtype} and {y.dtype}")
            if X.shape != (len(y), len(self.feature_names)) or not len(y):
                raise ValueError(
                    f"the {part} part is {X.shape} with {len(y)} labels and {len(self.feature_names)} feature names: "
                    "it must be (rows, features) with at least one row"
                )

    def digest(self) -> str:
        """SHA-256 over names, shapes and bytes of all four arrays: equal exactly when the task is the same."""
        state = hashlib.sha256(repr(self.feature_names).encode())
        for name in ARRAYS:
            array = np.ascontiguousarray(getattr(self, name))
            state.update(f"{name}{array.shape}{array.dtype.str}".encode())
            state.update(array.data)
        return state.hexdigest()
