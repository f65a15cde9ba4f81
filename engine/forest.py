"""The trees of a model as flat, checked, read-only arrays. May import NumPy, errors and tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import ModelError
from engine.tree import NODE_DTYPES, JoinedTrees, Tree

LAST_BIN = 65534
"""The largest value bin a split can name: `max_bin` is at most 65535 (contract §3)."""


@dataclass(frozen=True, eq=False)
class Forest:
    """The node arrays of all trees one after the other; immutable, and sound once it exists.

    Attributes
    ----------
    feature, bin, threshold, missing_left, left, right, leaf, value, gain, cover, count : ndarray
        As in `engine.tree.Tree`; `left` and `right` count from the first node of their own tree.
    offsets : ndarray of int64, shape (n_trees + 1,)
        Tree i owns the nodes ``[offsets[i] .. offsets[i + 1])``.

    Raises
    ------
    ModelError
        If an array has the wrong dtype or shape, an index is out of range, a child does not come after its parent,
        a node is not reached exactly once, or a number is not finite. Names the tree and the node.
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
    offsets: np.ndarray

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> Forest:
        """Join finished trees, in order; what lies joined is not copied."""
        joined = JoinedTrees.of(trees)
        return cls(**joined.arrays, offsets=joined.offsets)

    def __post_init__(self) -> None:
        for name, dtype in {**NODE_DTYPES, "offsets": np.int64}.items():
            array = np.asarray(getattr(self, name))
            if array.ndim != 1 or array.dtype != dtype:
                raise ModelError(
                    f"forest array '{name}' must be one-dimensional {np.dtype(dtype)}, "
                    f"got shape {array.shape} of {array.dtype}"
                )
            # A view, so that locking it leaves the caller's own array writable.
            view = np.ascontiguousarray(array).view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)
        _check_offsets(self)
        _check_nodes(self)
        _check_links(self)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def tree(self, index: int) -> Tree:
        """Tree `index` as read-only views; negative indices count from the end."""
        return JoinedTrees({name: getattr(self, name) for name in NODE_DTYPES}, self.offsets)[index]

    def tree_of_node(self) -> np.ndarray:
        """The tree that each node belongs to, int64."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def node_in_tree(self) -> np.ndarray:
        """Each node's index within its own tree, int64."""
        return np.arange(len(self.feature)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))

    def arrays(self) -> dict[str, np.ndarray]:
        """Every array by name, node arrays first, in declaration order."""
        return {name: getattr(self, name) for name in (*NODE_DTYPES, "offsets")}


def _check_offsets(forest: Forest) -> None:
    offsets, n_nodes = forest.offsets, len(forest.feature)
    for name in NODE_DTYPES:
        if len(getattr(forest, name)) != n_nodes:
            raise ModelError(f"forest array '{name}' has {len(getattr(forest, name))} nodes, 'feature' has {n_nodes}")
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != n_nodes or np.any(offsets[1:] <= offsets[:-1]):
        raise ModelError(f"tree offsets must rise strictly from 0 to the number of nodes, {n_nodes}")


def _check_nodes(forest: Forest) -> None:
    """What each node must be by itself (contract §11)."""
    _require(forest, forest.leaf <= 1, "the leaf flag must be 0 or 1")
    _require(forest, forest.missing_left <= 1, "missing_left must be 0 or 1")
    for name in ("value", "gain", "cover"):
        _require(forest, np.isfinite(getattr(forest, name)), f"'{name}' must be finite")
    _require(forest, forest.cover >= 0, "'cover' must be >= 0")
    _require(forest, forest.count >= 0, "'count' must be >= 0")

    leaf = forest.leaf == 1
    for name, none in {
        "feature": -1,
        "bin": -1,
        "left": -1,
        "right": -1,
        "threshold": 0,
        "gain": 0,
        "missing_left": 0,
    }.items():
        _require(forest, ~leaf | (getattr(forest, name) == none), f"a leaf must have '{name}' {none}")
    _require(forest, leaf | (forest.value == 0), "an inner node must have 'value' 0")
    _require(forest, leaf | (forest.feature >= 0), "an inner node must name a feature >= 0")
    _require(forest, leaf | ((forest.bin >= 0) & (forest.bin <= LAST_BIN)), f"'bin' must lie in [0, {LAST_BIN}]")
    _require(forest, leaf | (forest.threshold > -np.inf), "'threshold' must be a number or +inf")


def _check_links(forest: Forest) -> None:
    """Children come after their parent and each node but the root has exactly one: so it is a tree, without a cycle."""
    inner = np.flatnonzero(forest.leaf == 0)
    n_nodes = np.diff(forest.offsets)
    first, end = (np.repeat(ends, n_nodes)[inner] for ends in (forest.offsets[:-1], forest.offsets[1:]))
    wanted = np.ones(len(forest.leaf), dtype=np.int32)  # parents; a small fit's peak of memory is here
    wanted[forest.offsets[:-1]] = 0
    for side in ("left", "right"):
        child = first + getattr(forest, side)[inner]
        _require(forest, child < end, f"the {side} child is out of range", inner)
        _require(forest, child > inner, f"the {side} child must come after its parent", inner)
        wanted -= np.bincount(child, minlength=len(wanted))
    _require(forest, wanted == 0, "each node but the root must have exactly one parent")


def _require(forest: Forest, holds: np.ndarray, rule: str, nodes: np.ndarray | None = None) -> None:
    """Of all nodes, or of some, given by their places in the arrays."""
    if not holds.all():
        at = int(np.argmin(holds)) if nodes is None else int(nodes[np.argmin(holds)])
        raise ModelError(f"tree {forest.tree_of_node()[at]}, node {forest.node_in_tree()[at]}: {rule}")
