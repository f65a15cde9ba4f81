"""Depth of a tree from its child arrays, for reading models back. Imports nothing."""

from __future__ import annotations

from collections.abc import Sequence


def tree_depth(left: Sequence[int], right: Sequence[int]) -> int:
    """Splits on the longest way from root to leaf.

    Parameters
    ----------
    left, right : sequence of int
        Children of each node, which come after it. A negative child is a leaf that is not a node of its own
        (LightGBM); a node with both children -1 is itself a leaf (XGBoost, the engine).

    Returns
    -------
    int
        0 for a single leaf or an empty tree.
    """
    above = [0] * len(left)
    deepest = 0
    for node, children in enumerate(zip(left, right, strict=True)):
        if children == (-1, -1):
            continue
        deepest = max(deepest, above[node] + 1)
        for child in children:
            if child >= 0:
                above[child] = above[node] + 1
    return deepest
