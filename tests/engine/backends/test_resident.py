"""Fits on the emulated device: the layout that host and kernels share, budgets, the same bytes in any schedule.

tests/engine/test_identity.py compares any problem; here are those that reach a particular path.
"""

from __future__ import annotations

import ctypes
from contextlib import closing
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import engine
from engine.backends import open_backend, resident_shape, resident_state
from engine.backends.resident import ResidentBackend
from engine.backends.resident_shape import FitShape, fit_bytes
from engine.backends.resident_state import FINISHED_NODE, FIT_STATE
from engine.backends.resident_trees import breadth_first
from engine.device.emulated import EmulatedDevice, load_library
from engine.device.tuner import NEVER, Tuning
from engine.errors import ParamError, SessionError
from engine.growers import GROWERS
from engine.params import Params, parse_params
from engine.tree import Tree
from tests.engine.growing import assert_same, grow

NAN = float("nan")


def make_data(n_rows: int, n_features: int = 3, *, max_bin: int = 255, weight: Any = None) -> engine.Dataset:
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, n_features))
    X[:, 1] = np.where(rng.random(n_rows) < 0.3, NAN, np.round(X[:, 1], 1))
    y = np.nan_to_num(X).sum(axis=1) + rng.normal(size=n_rows)
    return engine.Dataset(X, (y > 0).astype(float), weight=weight, max_bin=max_bin)


def emulated(seed: int = 0, **settings: Any) -> ResidentBackend:
    return ResidentBackend(partial(EmulatedDevice, seed, **settings))


# ---- what host and kernels share -------------------------------------------------------------------------------------


def compiled(name: str) -> tuple[int, int]:
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    layout = load_library().state_layout
    layout.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)]
    layout.restype = ctypes.c_bool
    assert layout(name.encode(), offset, size), f"state_layout.cpp does not list {name}"
    return offset.value, size.value


@pytest.mark.parametrize(
    ("struct", "dtype"),
    [
        ("FitState", FIT_STATE),
        ("FinishedNode", FINISHED_NODE),
        ("EvalPlane", resident_state.EVAL_PLANE),
        ("Regularisation", resident_state.REGULARISATION),
    ],
)
def test_the_compiler_lays_structures_out_as_the_host_does(struct, dtype):
    assert compiled(struct) == (0, dtype.itemsize)
    for name, (field, offset) in dtype.fields.items():
        assert compiled(f"{struct}.{name}") == (offset, field.itemsize), name


@pytest.mark.parametrize(
    ("struct", "nbytes"),
    [
        ("Node", resident_state.NODE_BYTES),
        ("FeatureSplit", resident_state.FEATURE_SPLIT_BYTES),
        ("Candidate", resident_state.CANDIDATE_BYTES),
        ("Search", resident_state.SEARCH_BYTES),
        ("BuildItem", resident_state.BUILD_ITEM_BYTES),
        ("PartitionItem", resident_state.PARTITION_ITEM_BYTES),
        ("LeafPiece", resident_state.LEAF_PIECE_BYTES),
        ("FloatPair", 8),
        ("QuantisedPair", 8),
    ],
)
def test_the_host_allots_what_the_compiler_says_an_item_takes(struct, nbytes):
    assert compiled(struct) == (0, nbytes)


# ---- the same bytes, whatever the schedule ---------------------------------------------------------------------------

FIXED = {
    "depthwise, hessians, many chunks": (2600, {}, {"grower": "depthwise", "objective": "logistic", "max_depth": 2}),
    "levelwise, counts": (600, {}, {"grower": "levelwise", "max_depth": 2}),
    "leafwise, waves": (70, {}, {"grower": "leafwise", "objective": "poisson", "max_leaves": 5}),
    "depthwise, budget": (40, {}, {"max_leaves": 5, "max_depth": 3}),
    "levelwise, wide, counted": (
        300,
        {"max_bin": 1000, "weight": np.linspace(0.5, 3, 300)},
        {"grower": "levelwise", "max_depth": 2, "min_samples_leaf": 3},
    ),
    "leafwise, wide, repeated": (
        300,
        {"max_bin": 1000, "weight": np.arange(300) % 7 + 1},
        {"grower": "leafwise", "max_leaves": 4},
    ),
}


@cache
def fixed(name: str) -> tuple[engine.Dataset, dict[str, Any], list[Tree]]:
    n_rows, data, params = FIXED[name]
    train, params = make_data(n_rows, 2, **data), {"n_estimators": 1} | params
    return train, params, grow(open_backend("cpu"), train, params)


@pytest.mark.parametrize("name", FIXED)
def test_two_hundred_schedules(name):
    train, params, expected = fixed(name)
    assert len(expected[0]) > 4
    for seed in range(200):
        assert_same(grow(emulated(seed), train, params), expected)


@pytest.mark.parametrize("grower", GROWERS)
@pytest.mark.parametrize("n_rows", [1, 31, 32, 33, 1000])
def test_row_counts_about_a_warp(grower, n_rows):
    train = make_data(n_rows)
    params = {"grower": grower, "objective": "logistic", "n_estimators": 2, "max_depth": 4, "max_leaves": 9}
    assert_same(grow(emulated(n_rows), train, params), grow(open_backend("cpu"), train, params))


@pytest.mark.parametrize("grower", GROWERS)
def test_seventy_thousand_rows(grower):
    train = make_data(70_000, 2)
    params = {"grower": grower, "objective": "logistic", "n_estimators": 2, "max_depth": 3, "max_leaves": 8}
    assert_same(grow(emulated(7), train, params), grow(open_backend("cpu"), train, params))


def test_more_than_a_tile_of_features():
    train = make_data(700, 37)
    assert_same(grow(emulated(3), train, {"n_estimators": 1}), grow(open_backend("cpu"), train, {"n_estimators": 1}))


# ---- budgets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes_per_leaf", [2, 3])
def test_waves_look_ahead_only_as_far_as_there_is_room(monkeypatch, nodes_per_leaf):
    monkeypatch.setattr(resident_shape, "NODES_PER_LEAF", nodes_per_leaf)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    train = engine.Dataset(X, np.exp(3 * X[:, 0]) + rng.normal(size=400))
    params = {"grower": "leafwise", "n_estimators": 2, "max_leaves": 20}
    assert FitShape(parse_params(params), 400, train.cuts.value_bins).is_speculation_bounded
    assert_same(grow(emulated(1), train, params), grow(open_backend("cpu"), train, params))


@pytest.mark.parametrize("least_tiled", [1, 100, NEVER])
@pytest.mark.parametrize("objective", ["squared_error", "logistic"])
def test_which_nodes_take_the_shared_tile_changes_no_bit(monkeypatch, least_tiled, objective):
    monkeypatch.setattr("engine.backends.resident.Tuning", partial(Tuning, tile_rows=512, least_tiled=least_tiled))
    train = make_data(1500, weight=np.full(1500, 7))  # as large as a quantised gradient gets
    params = {"objective": objective, "n_estimators": 1, "max_depth": 3, "min_samples_leaf": 2}
    assert_same(grow(emulated(5), train, params), grow(open_backend("cpu"), train, params))


def test_limits_that_bound_nothing_are_polled_for(monkeypatch):
    monkeypatch.setattr("engine.backends.resident.POLLED_ROUNDS", 9)
    train, params = make_data(60), {"max_depth": 0, "max_leaves": 0, "n_estimators": 2}
    backend = emulated()
    assert_same(grow(backend, train, params), grow(open_backend("cpu"), train, params))
    assert backend.ledger.entries["plan"].syncs > 0


def test_trees_come_home_in_parts_where_there_is_no_room_for_all(monkeypatch):
    train, params = make_data(50), {"max_depth": 2, "n_estimators": 5}
    monkeypatch.setattr(resident_shape, "TREES_BYTES", 2 * 7 * FINISHED_NODE.itemsize)
    assert FitShape(parse_params(params), 50, train.cuts.value_bins).trees_held == 2
    assert_same(grow(emulated(), train, params), grow(open_backend("cpu"), train, params))


@pytest.mark.parametrize(
    ("given", "kind", "rounds", "nodes", "slots"),
    [
        ({"max_depth": 6}, "every", 6, 127, 32),
        ({"max_depth": 6, "max_leaves": 10}, "every", 6, 19, 10),
        ({"grower": "levelwise", "max_depth": 3}, "common", 3, 15, 4),
        ({"grower": "leafwise", "max_leaves": 31}, "best", 30, 124, 62),
        ({"grower": "leafwise", "max_leaves": 31, "max_depth": 6}, "best", 30, 124, 32),
        ({"grower": "leafwise", "max_leaves": 31, "max_depth": 5}, "best", 5, 63, 16),
        ({"grower": "leafwise", "max_leaves": 32, "max_depth": 5}, "every", 5, 63, 16),
        ({"grower": "leafwise", "max_leaves": 0, "max_depth": 0}, "every", 999, 1999, 1000),
    ],
)
def test_room_and_rounds_follow_from_the_limits(given, kind, rounds, nodes, slots):
    shape = FitShape(parse_params(given), 1000, np.array([255]))
    assert (shape.kind, shape.rounds, shape.most_nodes, shape.n_slots) == (kind, rounds, nodes, slots)


# ---- refusals --------------------------------------------------------------------------------------------------------


def test_a_feature_too_wide_for_a_block_is_refused_before_any_work_and_taken_by_the_cpu():
    train = engine.Dataset(np.arange(3000.0)[:, None], np.arange(3000.0), max_bin=3000)
    backend = emulated(shared_limit=32 * 1024)
    plane = backend.ingest(train)
    with closing(backend), pytest.raises(ParamError, match=r"feature 0 has 3000 value bins.*limit is 32768.*'cpu'"):
        backend.begin_fit(plane, train.label, None, Params(n_estimators=1), np.float32(0))
    assert backend.ledger.entries.get("begin") is None or not backend.ledger.entries["begin"].allocations
    assert len(grow(open_backend("cpu"), train, {"n_estimators": 1})[0]) > 1


def test_transactions_out_of_order_are_refused():
    train = make_data(10)
    backend = emulated()
    with closing(backend), pytest.raises(SessionError, match="begin_fit comes first"):
        backend.begin_tree(0)
    backend = emulated()
    with closing(backend):
        plane = backend.ingest(train)
        backend.begin_fit(plane, train.label, None, Params(), np.float32(0))
        with pytest.raises(SessionError, match="has a fit already"):
            backend.begin_fit(plane, train.label, None, Params(), np.float32(0))


def test_a_fit_allocates_what_was_said_and_gives_it_all_back():
    devices: list[EmulatedDevice] = []
    backend = ResidentBackend(lambda: devices.append(EmulatedDevice()) or devices[-1])
    train = make_data(40)
    plane = backend.ingest(train)
    backend.begin_fit(plane, train.label, None, Params(), np.float32(0))
    assert devices[1].allocated == sum(fit_bytes(FitShape(Params(), 40, train.cuts.value_bins)).values())
    backend.close()
    assert devices[1].allocated == 0


# ---- trees from the device -------------------------------------------------------------------------------------------


def test_nodes_in_order_of_creation_are_numbered_breadth_first():
    nodes = np.zeros(9, FINISHED_NODE)
    nodes["left"] = [3, -1, -1, 5, -1, -1, -1, -1, -1]
    nodes["right"] = [2, -1, -1, 4, -1, -1, -1, -1, -1]
    nodes["count"] = np.arange(9)
    tree = breadth_first(nodes)
    assert tree.count.tolist() == [0, 3, 2, 5, 4]
    assert tree.left.tolist() == [1, 3, -1, -1, -1]
    assert tree.right.tolist() == [2, 4, -1, -1, -1]
    assert tree.leaf.tolist() == [0, 0, 1, 1, 1]
