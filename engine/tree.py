"""Finished trees as flat arrays, breadth first (contract §11). May import NumPy only."""

from __future__ import annotations

from collections.abc import Sequence
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


class JoinedTrees(Sequence[Tree]):
    """Trees whose nodes lie one after the other already; a `Tree` is made of views when it is asked for.

    Parameters
    ----------
    arrays : dict of str to ndarray
        Node arrays of all trees, those of `NODE_DTYPES`.
    offsets : ndarray of int64, shape (n_trees + 1,)
        Tree i owns the nodes ``[offsets[i] .. offsets[i + 1])``.
    """

    def __init__(self, arrays: dict[str, np.ndarray], offsets: np.ndarray) -> None:
        self.arrays, self.offsets = arrays, offsets

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> JoinedTrees:
        """The trees, in order; copied only if they do not lie so."""
        if isinstance(trees, cls):
            return trees
        arrays = {
            name: np.concatenate([getattr(tree, name) for tree in trees] or [np.empty(0, dtype)])
            for name, dtype in NODE_DTYPES.items()
        }
        return cls(arrays, np.cumsum([0, *map(len, trees)], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int | slice) -> Tree | list[Tree]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        index = range(len(self))[index]
        nodes = slice(self.offsets[index], self.offsets[index + 1])
        return Tree(**{name: array[nodes] for name, array in self.arrays.items()})
