"""Trees as they come from the device, made into the arrays of contract §11. May import tree.

On the device a tree's nodes lie in order of creation; some may belong to no finished tree.
"""

from __future__ import annotations

import numpy as np

from engine.tree import Tree


def breadth_first(nodes: np.ndarray) -> Tree:
    """The tree whose root is the first of some device nodes (`FINISHED_NODE`), numbered breadth first."""
    levels = [np.zeros(1, np.int64)]
    while levels[-1].size:
        inner = levels[-1][nodes["left"][levels[-1]] >= 0]
        levels.append(np.stack([nodes["left"][inner], nodes["right"][inner]], axis=1).reshape(-1).astype(np.int64))
    tree = nodes[np.concatenate(levels)]
    inner = tree["left"] >= 0
    # Breadth first, the children of the k-th inner node are nodes 2k + 1 and 2k + 2.
    left = np.where(inner, 2 * inner.cumsum() - 1, -1).astype(np.int32)
    return Tree(
        feature=tree["feature"].copy(),
        bin=tree["bin"].copy(),
        threshold=np.zeros(len(tree)),
        missing_left=tree["missing_left"].astype(np.uint8),
        left=left,
        right=np.where(inner, left + 1, -1).astype(np.int32),
        leaf=(~inner).astype(np.uint8),
        value=tree["value"].copy(),
        gain=tree["gain"].copy(),
        cover=tree["cover"].copy(),
        count=tree["count"].copy(),
    )
