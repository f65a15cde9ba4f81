"""Prediction against a walk down the trees in plain Python, one row and one comparison at a time."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.columns import Columns
from engine.errors import DataError
from engine.forest import Forest
from engine.predictor import predict_leaf, predict_margins
from engine.tree import NODE_DTYPES, Tree


def random_tree(random, n_features, n_splits, thresholds):
    """A tree of any shape, its children in any order that comes after their parent."""
    nodes = [{"leaf": 1}]
    leaves = [0]
    for _ in range(n_splits):
        at = leaves.pop(random.integers(len(leaves)))
        children = [len(nodes), len(nodes) + 1]
        leaves += children
        nodes += [{"leaf": 1}, {"leaf": 1}]
        random.shuffle(children)
        nodes[at] = {
            "leaf": 0,
            "feature": random.integers(n_features),
            "bin": 0,
            "threshold": random.choice(thresholds),
            "missing_left": random.integers(2),
            "left": children[0],
            "right": children[1],
            "gain": 1.0,
        }
    leaf = {"feature": -1, "bin": -1, "left": -1, "right": -1}
    for node in nodes:
        if node["leaf"]:
            node.update(leaf, value=np.float32(random.standard_normal() * 10.0 ** random.integers(-3, 4)))
    return Tree(**{name: np.array([node.get(name, 0) for node in nodes], dtype) for name, dtype in NODE_DTYPES.items()})


def leaf_of(tree, row):
    node = 0
    while not tree.leaf[node]:
        value, threshold = float(row[tree.feature[node]]), float(tree.threshold[node])
        goes_left = bool(tree.missing_left[node]) if math.isnan(value) else value < threshold
        node = int(tree.left[node] if goes_left else tree.right[node])
    return node


def assert_predicted(X, trees):
    base_margin = np.float32(0.1)
    forest = Forest.of(trees)
    rows = [list(row) for row in np.asarray(X)]
    leaves = np.array([[leaf_of(tree, row) for tree in trees] for row in rows], np.int32).reshape(len(rows), len(trees))
    margins = np.full(len(rows), base_margin, np.float32)
    for index, tree in enumerate(trees):
        margins += tree.value[leaves[:, index]]
    columns = Columns.of(X)
    for n_threads in (0, 1, 3):
        found = predict_leaf(columns, forest, n_threads)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, leaves)
        found = predict_margins(columns, forest, base_margin, n_threads)
        assert found.dtype == np.float32
        assert found.tobytes() == margins.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), n_rows=st.sampled_from([1, 7, 8, 9, 40]), n_features=st.integers(1, 4))
def test_rows_meet_thresholds_exactly(dtype, seed, n_rows, n_features):
    """Values are the thresholds themselves, rounded to the column's type, and their neighbours; some are missing."""
    random = np.random.default_rng(seed)
    thresholds = np.append(random.standard_normal(6) * 10.0 ** random.integers(-46, 39, 6), [0.0, 5e-324, -5e-324])
    near = thresholds.astype(dtype)
    pool = np.concatenate([near, np.nextafter(near, dtype(np.inf)), np.nextafter(near, dtype(-np.inf)), [np.nan, -0.0]])
    X = random.choice(pool.astype(dtype), (n_rows, n_features))
    trees = [
        random_tree(random, n_features, random.integers(0, 12), np.append(thresholds, np.inf))
        for _ in range(random.integers(0, 5))
    ]
    assert_predicted(X, trees)


@pytest.mark.parametrize(
    "layout",
    [
        np.ascontiguousarray,
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        lambda X: X[::-1, ::-1],
        lambda X: X.astype(np.float64),
        lambda X: pd.DataFrame({i: column if i % 3 else column.astype(np.float64) for i, column in enumerate(X.T)}),
        lambda X: np.nan_to_num(X * 100).astype(np.int64),
    ],
    ids=["C", "F", "strided", "reversed", "float64", "mixed", "integers"],
)
def test_many_rows_wide_and_deep(layout):
    random = np.random.default_rng(11)
    X = random.standard_normal((700, 30)).astype(np.float32)
    X[random.random(X.shape) < 0.1] = np.nan
    assert_predicted(layout(X), [random_tree(random, 30, 40, random.standard_normal(20)) for _ in range(6)])


def test_more_features_than_a_block_of_rows_holds():
    random = np.random.default_rng(12)
    X = random.standard_normal((20, 5000)).astype(np.float32)
    assert_predicted(X, [random_tree(random, 5000, 4000, [0.0, 0.5]) for _ in range(2)])


def test_a_chain_as_deep_as_it_has_splits():
    n = 500
    arrays = {name: np.zeros(2 * n + 1, dtype) for name, dtype in NODE_DTYPES.items()}
    inner = np.arange(0, 2 * n, 2)
    arrays["leaf"][:] = 1
    arrays["leaf"][inner] = 0
    for name in ("feature", "bin", "left", "right"):
        arrays[name][:] = -1
    arrays["feature"][inner] = arrays["bin"][inner] = 0
    arrays["left"][inner], arrays["right"][inner] = inner + 1, inner + 2
    arrays["threshold"][inner] = np.arange(n) + 0.5
    arrays["value"][arrays["leaf"] == 1] = np.arange(n + 1)
    X = np.random.default_rng(0).permutation(n + 1)[:, None].astype(np.float32)
    margins = predict_margins(Columns.of(X), Forest.of([Tree(**arrays)]), np.float32(0))
    np.testing.assert_array_equal(margins, X[:, 0])


def test_additions_round_to_float32_tree_after_tree():
    def stump(value):
        leaf = {"feature": -1, "bin": -1, "left": -1, "right": -1, "leaf": 1, "value": value}
        return Tree(**{name: np.array([leaf.get(name, 0)], dtype) for name, dtype in NODE_DTYPES.items()})

    forest = Forest.of([stump(2.0**24), stump(1.0), stump(1.0), stump(-(2.0**24))])
    margins = predict_margins(Columns.of(np.zeros((3, 1))), forest, np.float32(0))
    assert margins.tolist() == [0, 0, 0]  # in double, or in another order, it would be 2


def test_too_few_columns_are_refused():
    forest = Forest.of([random_tree(np.random.default_rng(0), 9, 60, [0.0])])
    used = int(forest.feature.max()) + 1
    for predict in (predict_leaf, lambda columns, forest: predict_margins(columns, forest, np.float32(0))):
        with pytest.raises(DataError, match=f"X has 2 columns, but the trees need {used}"):
            predict(Columns.of(np.zeros((3, 2))), forest)
