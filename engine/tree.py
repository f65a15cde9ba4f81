"""One finished tree as flat arrays, breadth first (contract §11). May import NumPy only."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

NODE_DTYPES = {
    "feature": np.int32,
    "bin": np.int32,
    "threshold": np.float64,
    "missing_left": np.uint8,
    "left": np.int32,
    "right": np.int32,
    "leaf": np.uint8,
    "value": np.float32,
    "gain": np.float64,
    "cover": np.float64,
    "count": np.int64,
}


@dataclass(frozen=True, eq=False)
class Tree:
    """Flat node arrays of one length; children are indices into the same arrays.

    Attributes
    ----------
    feature, bin : ndarray of int32
        The split, -1 in a leaf. Value bins ``<= bin`` go left.
    threshold : ndarray of float64
        Raw values ``< threshold`` go left; ``+inf`` parts present from missing; 0 in a leaf.
    missing_left : ndarray of uint8
        1 where a missing value goes left.
    left, right : ndarray of int32
        Child indices, -1 in a leaf.
    leaf : ndarray of uint8
        1 in a leaf.
    value : ndarray of float32
        What a leaf adds to the margin; 0 in an inner node.
    gain : ndarray of float64
        Gain of the node's split; 0 in a leaf.
    cover : ndarray of float64
        Sum of hessians of the node's rows.
    count : ndarray of int64
        Number of training rows in the node.
    """

    feature: np.ndarray
    bin: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray
    left: np.ndarray
    right: np.ndarray
    leaf: np.ndarray
    value: np.ndarray
    gain: np.ndarray
    cover: np.ndarray
    count: np.ndarray

    def __post_init__(self) -> None:
        for name, dtype in NODE_DTYPES.items():
            array = getattr(self, name)
            if array.dtype != dtype or array.ndim != 1 or len(array) != len(self.feature):
                raise ValueError(
                    f"tree array '{name}' must be {len(self.feature)} values of {np.dtype(dtype)}, "
                    f"got shape {array.shape} of {array.dtype}"
                )

    def __len__(self) -> int:
        return len(self.feature)

    def arrays(self) -> dict[str, np.ndarray]:
        """The node arrays by name, in declaration order."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
