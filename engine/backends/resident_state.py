"""FitState and what else host and kernels share, as the compiler lays it out; and its packing. Imports NumPy only.

The kernels' own description is engine/kernels/state.cuh; the tests ask the compiler whether this one agrees.
"""

from __future__ import annotations

import numpy as np

WARP = 32
TILE_WIDTH = 16
LEAF_PIECE_ROWS = 8192
PARTITION_ROWS = 1024
LEAST_CHUNK_ROWS = 512
"""Constants of the kernels, by the same names."""

_ADDRESS = np.uint64

REGULARISATION = np.dtype(
    [
        ("lambda", np.float64),
        ("alpha", np.float64),
        ("gamma", np.float64),
        ("min_child_weight", np.float64),
        ("min_samples_leaf", np.int64),
    ]
)

EVAL_PLANE = np.dtype([("columns", _ADDRESS), ("margins", _ADDRESS), ("n_rows", np.int64)])

FINISHED_NODE = np.dtype(
    [
        ("gain", np.float64),
        ("cover", np.float64),
        ("count", np.int64),
        ("feature", np.int32),
        ("bin", np.int32),
        ("missing_left", np.int32),
        ("left", np.int32),
        ("right", np.int32),
        ("value", np.float32),
    ]
)

BUFFERS = (
    "value_bins",
    "first_bin",
    "feature_of",
    "label",
    "weight",
    "evals",
    "margin",
    "gradient",
    "rows",
    "pairs",
    "cells",
    "nodes",
    "feature_splits",
    "level_splits",
    "may_miss",
    "searches",
    "frontier",
    "planned",
    "met_gain",
    "met_node",
    "build_items",
    "direct_items",
    "partition_items",
    "partition_words",
    "leaves",
    "trees",
)
"""Addresses in FitState of what `fit_bytes` allots."""

PAIRED = ("rows", "pairs", "frontier")
"""Of these there are two, of one size, in one buffer."""

_SETTINGS = [
    ("n_rows", np.int64),
    ("slot_cells", np.uint64),
    ("n_features", np.int32),
    ("n_evals", np.int32),
    ("n_bins", np.uint32),
    ("group_width", np.uint32),
    ("n_groups", np.uint32),
    ("n_build_blocks", np.uint32),
    ("most_nodes", np.uint32),
    ("trees_held", np.uint32),
    ("chunk_rows", np.uint32),
    ("direct_below", np.uint32),
    ("reg", REGULARISATION),
    ("learning_rate", np.float64),
    ("max_leaves", np.int64),
    ("node_budget", np.int64),
    ("max_depth", np.int32),
    ("frequencies", np.int32),
    ("constant_hessian", np.int32),
    ("base_margin", np.float32),
]
_CHANGING = [
    ("root_g", np.int64),
    ("root_h", np.int64),
    ("scale_g", np.float64),
    ("scale_h", np.float64),
    ("rows_tiled", np.uint64),
    ("rows_direct", np.uint64),
    ("rows_partitioned", np.uint64),
    ("maximum_g", np.uint32),
    ("maximum_h", np.uint32),
    ("n_leaves", np.uint32),
    ("tree", np.uint32),
    ("epoch", np.uint32),
    ("is_finished", np.uint32),
    ("n_nodes", np.uint32),
    ("n_slots", np.uint32),
    ("n_splits", np.uint32),
    ("frontier_at", np.uint32),
    ("n_frontier", np.uint32),
    ("n_searches", np.uint32),
    ("n_build_items", np.uint32),
    ("n_direct_items", np.uint32),
    ("n_planned", np.uint32),
    ("n_partition_items", np.uint32),
    ("partition_ticket", np.uint32),
]
FIT_STATE = np.dtype(
    [
        ("tiles", _ADDRESS),
        ("columns", _ADDRESS),
        *((name, _ADDRESS, (2,)) if name in PAIRED else (name, _ADDRESS) for name in BUFFERS),
        *_SETTINGS,
        *_CHANGING,
    ],
    align=True,
)
"""All zero but for addresses and settings, which the host writes once; then only kernels write."""

NODE_BYTES, FEATURE_SPLIT_BYTES, CANDIDATE_BYTES = 104, 32, 24
SEARCH_BYTES, BUILD_ITEM_BYTES, PARTITION_ITEM_BYTES, LEAF_PIECE_BYTES = 8, 16, 8, 16
