"""The cuts that part every feature's values into bins (contract §3). May import the native module, columns, cores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine import _native
from engine.columns import Columns
from engine.cores import usable_cores

NARROW_BINS = 255
"""Value bins a feature may have, besides the missing one, for all bins to fit uint8."""


@dataclass(frozen=True, eq=False)
class Cuts:
    """Ascending cuts of every feature; read-only. ``==`` compares contents.

    Attributes
    ----------
    values : ndarray of float64
        All features' cuts, one after the other. A value's bin is the number of its feature's cuts ``<=`` it.
    offsets : ndarray of int64, shape (n_features + 1,)
        Feature f owns ``values[offsets[f] : offsets[f + 1]]``.
    value_bins : ndarray of int32, shape (n_features,)
        Bins of non-missing values: one more than the cuts, or 0 where every value was missing. Also the number of
        the feature's missing bin.
    """

    values: np.ndarray
    offsets: np.ndarray
    value_bins: np.ndarray

    def __post_init__(self) -> None:
        for array in (self.values, self.offsets, self.value_bins):
            array.flags.writeable = False

    @classmethod
    def find(cls, columns: Columns, weight: np.ndarray | None, max_bin: int) -> Cuts:
        """Quantile cuts by contract §3.

        Parameters
        ----------
        columns : Columns or ResidentColumns
        weight : ndarray of float32, shape (n_rows,), optional
            Positive and finite.
        max_bin : int in [2, 65535]
        """
        found = [_native.find_cuts(arrays, weight, max_bin, usable_cores()) for arrays in columns.on_host()]
        if len(found) == 1:
            return cls(*found[0])
        values, offsets, value_bins = zip(*found, strict=True)
        counts = np.concatenate([np.diff(some) for some in offsets])
        return cls(np.concatenate(values), np.concatenate([[0], counts.cumsum()]), np.concatenate(value_bins))

    def of(self, feature: int) -> np.ndarray:
        """The cuts of one feature."""
        return self.values[self.offsets[feature] : self.offsets[feature + 1]]

    @property
    def wide(self) -> bool:
        """Whether bins need uint16."""
        return bool((self.value_bins > NARROW_BINS).any())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cuts):
            return NotImplemented
        return self is other or (
            np.array_equal(self.value_bins, other.value_bins) and np.array_equal(self.values, other.values)
        )

    __hash__ = None
