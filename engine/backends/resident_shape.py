"""How large a fit is: the nodes, slots and rounds that its limits allow, the bytes of every buffer. May import params.

Nothing here needs a device, so what a fit will take can be told before there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from engine.backends.resident_state import (
    BUILD_ITEM_BYTES,
    CANDIDATE_BYTES,
    EVAL_PLANE,
    FEATURE_SPLIT_BYTES,
    FINISHED_NODE,
    FIT_STATE,
    LEAF_PIECE_BYTES,
    LEAF_PIECE_ROWS,
    LEAST_CHUNK_ROWS,
    NODE_BYTES,
    PARTITION_ITEM_BYTES,
    PARTITION_ROWS,
    SEARCH_BYTES,
    TILE_WIDTH,
    WARP,
)
from engine.errors import ParamError
from engine.params import Params

TREES_BYTES = 256 * 2**20
"""Finished trees stay on the device until there are so many bytes of them."""

NODES_PER_LEAF = 4
"""Best-first waves may make this many nodes for each leaf that the tree is allowed."""

TILE_SHARED = 48 * 1024
"""Shared bytes that the features of a tile are grouped to; only one feature alone may take more."""

Layout = Literal["count", "pair", "counted"]
Kind = Literal["every", "best", "common"]

WORDS = {"count": 3, "pair": 4, "counted": 5}
"""32-bit words of a cell in shared memory."""

PLANES = {"count": 2, "pair": 2, "counted": 3}
"""64-bit words of a cell in a slot."""


@dataclass(frozen=True)
class FitShape:
    """All that the size of a fit depends on.

    Attributes
    ----------
    params : Params
    n_rows : int
    value_bins : ndarray of int32, shape (n_features,)
    weighted : bool
        Whether there are weights other than 1.
    eval_rows : tuple of int
        Rows of each eval set.
    """

    params: Params
    n_rows: int
    value_bins: np.ndarray
    weighted: bool = False
    eval_rows: tuple[int, ...] = ()

    @property
    def layout(self) -> Layout:
        """What a histogram cell holds."""
        if self.params.objective == "squared_error" and not self.weighted:
            return "count"
        return "counted" if self.params.min_samples_leaf > 1 else "pair"

    @cached_property
    def first_bin(self) -> np.ndarray:
        """Where each feature's cells begin in a plane, and where the last one's end; uint32."""
        cells = (self.value_bins.astype(np.int64) + 1 + WARP - 1) // WARP * WARP
        return np.concatenate([[0], cells.cumsum()]).astype(np.uint32)

    @property
    def n_bins(self) -> int:
        """Cells of a plane."""
        return int(self.first_bin[-1])

    @property
    def slot_cells(self) -> int:
        """64-bit words of one node's histogram."""
        return PLANES[self.layout] * self.n_bins

    @property
    def most_leaves(self) -> int:
        """Of a tree that knows no max_leaves: by depth, and by rows."""
        by_rows = max(1, self.n_rows // self.params.min_samples_leaf)
        return by_rows if not 0 < self.params.max_depth < 31 else min(by_rows, 2**self.params.max_depth)

    @property
    def kind(self) -> Kind:
        """How nodes are chosen. A best-first tree with room for every leaf is the depthwise one."""
        if self.params.grower == "levelwise":
            return "common"
        bounded = self.params.grower == "leafwise" and 0 < self.params.max_leaves < self.most_leaves
        return "best" if bounded else "every"

    @property
    def is_speculation_bounded(self) -> bool:
        """Whether best-first waves could make more nodes than there is room for."""
        return self.kind == "best" and self.most_leaves * 2 > NODES_PER_LEAF * self.params.max_leaves

    @property
    def most_nodes(self) -> int:
        """Nodes that a tree may make while it grows."""
        leaves, limit = self.most_leaves, self.params.max_leaves
        if self.is_speculation_bounded:
            return NODES_PER_LEAF * limit
        return 2 * (min(leaves, limit) if limit and self.kind != "best" else leaves) - 1

    @property
    def n_slots(self) -> int:
        """Histograms that a tree may hold: one for each leaf that may still be split."""
        leaves, depth = (self.most_nodes + 1) // 2, self.params.max_depth
        return min(leaves, 2 ** (depth - 1)) if 0 < depth < 32 else leaves

    @property
    def rounds(self) -> int:
        """Rounds after which the limits leave nothing to split."""
        depth = self.params.max_depth or self.n_rows
        by_leaves = min(self.params.max_leaves or self.n_rows, self.n_rows) - 1
        return by_leaves if self.is_speculation_bounded else min(depth, by_leaves)

    @property
    def trees_held(self) -> int:
        """Finished trees that stay on the device."""
        return max(1, min(self.params.n_estimators, TREES_BYTES // (self.most_nodes * FINISHED_NODE.itemsize)))

    def group_width(self, shared_limit: int) -> int:
        """Features, of one tile, whose cells fit in a block's shared memory together.

        Raises
        ------
        ParamError
            If a single feature's do not.
        """
        width = TILE_WIDTH
        while width > 1 and self.shared_bytes(width) > min(TILE_SHARED, shared_limit):
            width //= 2
        if self.shared_bytes(width) <= shared_limit:
            return width
        feature = int(np.diff(self.first_bin).argmax())
        raise ParamError(
            f"feature {feature} has {self.value_bins[feature]} value bins, which take {self.shared_bytes(1)} bytes of "
            f"a GPU block's shared memory; the limit is {shared_limit}: lower max_bin or train with device='cpu'"
        )

    def shared_bytes(self, width: int) -> int:
        """Of the largest group of so many features."""
        edges = self.first_bin[np.r_[0 : len(self.value_bins) : width, len(self.value_bins)]].astype(np.int64)
        return int(np.diff(edges).max()) * WORDS[self.layout] * 4


def fit_bytes(shape: FitShape) -> dict[str, int]:
    """What a fit allocates besides its planes: bytes by buffer name."""
    n_rows, n_features = shape.n_rows, len(shape.value_bins)
    slots, leaves, nodes = shape.n_slots, (shape.most_nodes + 1) // 2, shape.most_nodes
    best, common = shape.kind == "best", shape.kind == "common"
    return {
        "state": FIT_STATE.itemsize,
        "value_bins": 4 * n_features,
        "first_bin": 4 * (n_features + 1),
        "feature_of": 4 * (shape.n_bins // WARP),
        "label": 4 * n_rows,
        "weight": 4 * n_rows if shape.weighted else 0,
        "evals": EVAL_PLANE.itemsize * len(shape.eval_rows),
        "eval_margins": 4 * sum(shape.eval_rows),
        "margin": 4 * n_rows,
        "gradient": 8 * n_rows,
        "rows": 2 * 4 * n_rows,
        "pairs": 2 * 8 * n_rows,
        "cells": 8 * slots * shape.slot_cells,
        "nodes": NODE_BYTES * nodes,
        "feature_splits": 0 if common else FEATURE_SPLIT_BYTES * max(2, slots) * n_features,
        "level_splits": CANDIDATE_BYTES * (shape.n_bins // WARP) if common else 0,
        "may_miss": 4 * n_features if common else 0,
        "searches": SEARCH_BYTES * slots,
        "frontier": 2 * 4 * leaves,
        "planned": 4 * leaves,
        "met_gain": 16 * shape.params.max_leaves if best else 0,
        "met_node": 8 * shape.params.max_leaves if best else 0,
        "build_items": BUILD_ITEM_BYTES * (n_rows // LEAST_CHUNK_ROWS + slots),
        "direct_items": BUILD_ITEM_BYTES * slots,
        "partition_items": PARTITION_ITEM_BYTES * (n_rows // PARTITION_ROWS + leaves),
        "partition_words": 8 * (n_rows // PARTITION_ROWS + leaves),
        "leaves": LEAF_PIECE_BYTES * (n_rows // LEAF_PIECE_ROWS + leaves),
        "trees": FINISHED_NODE.itemsize * shape.trees_held * nodes,
    }


def eval_offsets(eval_rows: Sequence[int]) -> list[int]:
    """Where each eval set's margins begin in the buffer ``eval_margins``, in bytes."""
    return [4 * sum(eval_rows[:index]) for index in range(len(eval_rows))]
