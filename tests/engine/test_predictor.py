"""Prediction against a walk down the trees in plain NumPy, on every instruction set, at several numbers of threads."""

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine import _native
from engine.columns import Columns
from engine.errors import DataError, ParamError
from engine.forest import Forest
from engine.predictor import Predictor, is_matrix, respond
from engine.tree import NODE_DTYPES, Tree
from tests.engine.growing import RESPONSES, instruction_sets

BASE_MARGIN = np.float32(0.1)
THREADS = (1, 2, 3, 8)


def tree_of(nodes):
    """Each node its arrays' values by name; what is left out is a leaf's."""
    leaf = {"feature": -1, "bin": -1, "left": -1, "right": -1, "leaf": 1}
    inner = {"bin": 0, "gain": 1.0, "leaf": 0}
    nodes = [{**(inner if "left" in node else leaf), **node} for node in nodes]
    return Tree(**{name: np.array([node.get(name, 0) for node in nodes], dtype) for name, dtype in NODE_DTYPES.items()})


def random_test(random, n_features, thresholds):
    return {
        "feature": random.integers(n_features),
        "threshold": random.choice(thresholds),
        "missing_left": random.integers(2),
    }


def random_value(random):
    return {"value": np.float32(random.standard_normal() * 10.0 ** random.integers(-3, 4))}


def random_tree(random, n_features, n_splits, thresholds):
    """A tree of any shape, its children in any order that comes after their parent."""
    nodes, leaves = [random_value(random)], [0]
    for _ in range(n_splits):
        at = leaves.pop(random.integers(len(leaves)))
        children = [len(nodes), len(nodes) + 1]
        leaves += children
        nodes += [random_value(random), random_value(random)]
        random.shuffle(children)
        nodes[at] = {"left": children[0], "right": children[1], **random_test(random, n_features, thresholds)}
    return tree_of(nodes)


def levelwise_tree(random, n_features, n_levels, thresholds, *, split_share=0.8, is_common=True):
    """A tree level by level, of one test a level if `is_common`; a node that a level leaves whole meets the next."""
    nodes, frontier = [random_value(random)], [0]
    for _ in range(n_levels):
        test = random_test(random, n_features, thresholds)
        below = []
        for at in frontier:
            if random.random() > split_share:
                below.append(at)
                continue
            children = [len(nodes), len(nodes) + 1]
            nodes[at] = {"left": children[0], "right": children[1], **test}
            if not is_common:
                nodes[at] |= random_test(random, n_features, thresholds)
            nodes += [random_value(random), random_value(random)]
            below += children
        frontier = below
    return tree_of(nodes)


def leaves_of(tree, X):
    rows, node = np.arange(len(X)), np.zeros(len(X), np.int64)
    while not tree.leaf[node].all():
        inner = tree.leaf[node] == 0
        value = X[rows, np.where(inner, tree.feature[node], 0)]
        goes_left = np.where(np.isnan(value), tree.missing_left[node] == 1, value < tree.threshold[node])
        node = np.where(inner, np.where(goes_left, tree.left[node], tree.right[node]), node)
    return node.astype(np.int32)


def expected_of(X, trees):
    values = np.asarray(X, dtype=np.float64)
    known = {id(tree): leaves_of(tree, values) for tree in trees}
    leaves = np.array([known[id(tree)] for tree in trees], np.int32).reshape(len(trees), len(values)).T
    margins = np.full(len(values), BASE_MARGIN, np.float32)
    for index, tree in enumerate(trees):
        margins += tree.value[leaves[:, index]]
    return margins, leaves


def assert_predicted(X, trees, threads=THREADS):
    margins, leaves = expected_of(X, trees)
    ways = [Columns.of(X), X] if is_matrix(X) else [Columns.of(X)]
    for instruction_set in instruction_sets():
        predictor = Predictor(Forest.of(trees), instruction_set=instruction_set)
        for rows in ways:
            for n_threads in threads:
                found = predictor.leaves(rows, n_threads)
                assert found.dtype == np.int32
                np.testing.assert_array_equal(found, leaves)
                found = predictor.margins(rows, BASE_MARGIN, n_threads)
                assert found.dtype == np.float32
                assert found.tobytes() == margins.tobytes()
                found = predictor.margins(rows, BASE_MARGIN, n_threads, response_of="logistic")
                assert found.dtype == np.float64
                assert found.tobytes() == RESPONSES["logistic"](margins).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    n_rows=st.sampled_from([1, 7, 8, 33, 64, 65, 128, 129, 511, 513, 1100]),
    n_features=st.integers(1, 4),
)
def test_rows_meet_thresholds_exactly(dtype, seed, n_rows, n_features):
    """Values are the thresholds themselves, rounded to the column's type, and their neighbours; some are missing."""
    random = np.random.default_rng(seed)
    thresholds = np.append(random.standard_normal(6) * 10.0 ** random.integers(-46, 39, 6), [0.0, 5e-324, -5e-324])
    near = thresholds.astype(dtype)
    pool = np.concatenate([near, np.nextafter(near, dtype(np.inf)), np.nextafter(near, dtype(-np.inf)), [np.nan, -0.0]])
    X = random.choice(pool.astype(dtype), (n_rows, n_features))
    thresholds = np.append(thresholds, np.inf)
    trees = [
        levelwise_tree(random, n_features, random.integers(0, 7), thresholds)
        if random.integers(2)
        else random_tree(random, n_features, random.integers(0, 40), thresholds)
        for _ in range(random.integers(0, 5))
    ]
    assert_predicted(X, trees, threads=(0, 3))


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
    trees = [random_tree(random, 30, 40, random.standard_normal(20)) for _ in range(3)]
    assert_predicted(layout(X), [*trees, levelwise_tree(random, 30, 6, random.standard_normal(20))], threads=(2,))


def test_more_features_than_a_block_of_rows_holds():
    random = np.random.default_rng(12)
    X = random.standard_normal((100, 5000)).astype(np.float32)
    assert_predicted(X, [random_tree(random, 5000, 4000, [0.0, 0.5]) for _ in range(2)], threads=(1,))


def tree_shapes():
    """Forests of six features by name, each with a way of its own through packing."""
    random = np.random.default_rng(13)
    few, many = random.standard_normal(200), random.standard_normal(3000)
    full = {"split_share": 1.0, "is_common": False}
    stumps = [random_tree(random, 1, 1, [threshold]) for threshold in np.append(many[:254], np.inf)]
    return {
        "one leaf": [random_tree(random, 6, 0, few)] * 3,
        "levelwise, nodes left whole": [levelwise_tree(random, 6, 8, few) for _ in range(9)],
        "levelwise, too deep for a table": [levelwise_tree(random, 6, 11, few, split_share=0.9) for _ in range(3)],
        "full, 8 levels": [levelwise_tree(random, 6, 8, few, **full) for _ in range(5)],
        "full, 16 levels": [levelwise_tree(random, 6, 16, few, **full)],
        "256 leaves": [random_tree(random, 6, 255, few) for _ in range(6)],
        "257 leaves": [random_tree(random, 6, 256, few) for _ in range(3)],
        "thousands of leaves": [random_tree(random, 6, 4000, few) for _ in range(2)],
        "every rank of a byte": stumps,
        "more thresholds than that": [*stumps, random_tree(random, 1, 1, [many[-1]])],
        "wide bins": [random_tree(random, 2, 300, many) for _ in range(20)],
        "a mixture": [
            make(random, 6, size, few)
            for make, size in [(random_tree, 300), (levelwise_tree, 8), (random_tree, 0), (levelwise_tree, 10)] * 2
        ],
    }


SHAPES = tree_shapes()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_shape_of_tree(shape, dtype):
    random = np.random.default_rng(14)
    X = random.standard_normal((1300, 6)).astype(dtype)
    X[random.random(X.shape) < 0.1] = np.nan
    assert_predicted(X, SHAPES[shape], threads=(2,))


@pytest.mark.parametrize("shape", ["levelwise, nodes left whole", "257 leaves", "wide bins"])
def test_enough_rows_for_every_thread(shape):
    trees = SHAPES[shape] * (400 // len(SHAPES[shape]))
    n_rows = 4500
    assert Predictor(Forest.of(trees))._pack().useful_threads(n_rows) >= max(THREADS)
    X = np.random.default_rng(15).standard_normal((n_rows, 6)).astype(np.float32)
    assert_predicted(pd.DataFrame(X), trees)


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
    margins = Predictor(Forest.of([Tree(**arrays)])).margins(Columns.of(X), np.float32(0))
    np.testing.assert_array_equal(margins, X[:, 0])


def test_additions_round_to_float32_tree_after_tree():
    forest = Forest.of([tree_of([{"value": value}]) for value in (2.0**24, 1.0, 1.0, -(2.0**24))])
    margins = Predictor(forest).margins(Columns.of(np.zeros((3, 1))), np.float32(0))
    assert margins.tolist() == [0, 0, 0]  # in double, or in another order, it would be 2


@pytest.mark.parametrize("objective", RESPONSES)
@pytest.mark.parametrize("n_rows", [0, 1, 7, 513, 200_000])
def test_responses_follow_numpy_to_the_last_bit(objective, n_rows):
    margins = np.random.default_rng(n_rows).normal(0, 40, n_rows).astype(np.float32)
    margins[1:7] = [np.inf, -np.inf, -0.0, 1e-45, np.finfo(np.float32).max, -1000.0][: max(0, n_rows - 1)]
    expected = RESPONSES[objective](margins)
    for instruction_set in instruction_sets():
        found = _native.respond(margins, objective, 2, instruction_set)
        assert found.dtype == np.float64
        assert found.tobytes() == expected.tobytes()
    assert respond(margins, objective).tobytes() == expected.tobytes()


def test_the_response_of_no_objective_is_refused():
    with pytest.raises(ValueError, match="'hinge' is unknown"):
        respond(np.zeros(3, np.float32), "hinge")


def test_too_few_columns_are_refused():
    forest = Forest.of([random_tree(np.random.default_rng(0), 9, 60, [0.0])])
    used, predictor = int(forest.feature.max()) + 1, Predictor(forest)
    for rows in (Columns.of(np.zeros((3, 2))), np.zeros((3, 2))):
        for predict in (predictor.leaves, lambda rows: predictor.margins(rows, BASE_MARGIN)):
            with pytest.raises(DataError, match=f"X has 2 columns, but the trees need {used}"):
                predict(rows)


@pytest.mark.parametrize("n_rows", [1, 600])
@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
@pytest.mark.parametrize("column", [0, 7])
def test_an_infinity_is_named_wherever_it_is(n_rows, infinity, column):
    """Also in a column that no tree looks at."""
    predictor = Predictor(Forest.of(SHAPES["256 leaves"]))
    for dtype in (np.float32, np.float64):
        X = np.zeros((n_rows, 8), dtype)
        X[-1, column] = infinity
        for predict in (predictor.leaves, lambda rows: predictor.margins(rows, BASE_MARGIN)):
            with pytest.raises(DataError, match=f"column 'f{column}', row {n_rows - 1} is {infinity}"):
                predict(X)


def test_what_is_no_matrix_of_floats():
    good = np.zeros((2, 2), np.float32)
    unaligned = np.frombuffer(b"\0" * 33, np.uint8)[1:].view(np.float64).reshape(2, 2)
    masked = np.ma.masked_array(good, mask=True)
    for X in (good[0], good[:0], good.astype(">f4"), good.astype(np.float16), good.tolist(), unaligned, masked):
        assert not is_matrix(X)
    assert is_matrix(good)
    packed = Predictor(Forest.of(SHAPES["one leaf"]))._pack()
    for rows in (good[0], good.astype(np.int32), (good,), ()):
        with pytest.raises(ValueError, match=r"must be|no column"):
            packed.margins(rows, 0.0, 1)


@pytest.mark.parametrize("n_threads", [-1, 5000, 1.5, True])
def test_a_number_of_threads_that_is_none(n_threads):
    with pytest.raises(ParamError, match="n_threads"):
        Predictor(Forest.of([])).margins(np.zeros((2, 2)), BASE_MARGIN, n_threads)


def test_an_unknown_instruction_set_is_refused():
    with pytest.raises(ValueError, match="'neon' is unknown"):
        Predictor(Forest.of([]), instruction_set="neon").margins(np.zeros((2, 2)), BASE_MARGIN)


def test_threads_share_a_predictor():
    X = np.random.default_rng(16).standard_normal((300, 6))
    trees = SHAPES["a mixture"]
    predictor, found = Predictor(Forest.of(trees)), []
    calls = [threading.Thread(target=lambda: found.append(predictor.margins(X, BASE_MARGIN, 2))) for _ in range(8)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    expected = expected_of(X, trees)[0].tobytes()
    assert [margins.tobytes() for margins in found] == [expected] * 8


def test_ctrl_c_ends_a_long_prediction():
    """One row lies in memory; a stride of 0 makes half a billion of it."""
    X = np.broadcast_to(np.zeros(6, np.float32), (2**29, 6))
    predictor = Predictor(Forest.of(SHAPES["levelwise, nodes left whole"] * 30))

    def interrupt():
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=interrupt)
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        predictor.margins(X, BASE_MARGIN)
    sender.join()


# ---- over bins -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grower", ["depthwise", "leafwise", "levelwise"])
@pytest.mark.parametrize("max_bin", [2, 40, 255, 300])
def test_bins_of_the_same_cuts_give_the_same_bits(grower, max_bin):
    random = np.random.default_rng(17)
    X = np.round(random.standard_normal((1500, 5)), 3)
    X[random.random(X.shape) < 0.2] = np.nan
    X[:, 3] = np.nan
    y = np.nan_to_num(X[:, 0]) + np.isnan(X[:, 1]) + np.nan_to_num(X[:, 2]) ** 2
    train = engine.Dataset(X, y, max_bin=max_bin)
    params = {"n_estimators": 20, "grower": grower, "max_leaves": 60, "max_bin": max_bin}
    forest = engine.train(params, train).forest
    valid = engine.Dataset(random.permuted(X), cuts_from=train)
    rows = valid.columns
    for instruction_set in instruction_sets():
        predictor = Predictor(forest, instruction_set=instruction_set)
        for n_threads in (1, 3):
            margins = predictor.margins_of_bins(valid.plane("cpu"), valid.cuts, BASE_MARGIN, n_threads)
            leaves = predictor.leaves_of_bins(valid.plane("cpu"), valid.cuts, n_threads)
            assert margins.tobytes() == predictor.margins(rows, BASE_MARGIN).tobytes()
            means = predictor.margins_of_bins(valid.plane("cpu"), valid.cuts, BASE_MARGIN, n_threads, "poisson")
            assert means.tobytes() == RESPONSES["poisson"](margins).tobytes()
            np.testing.assert_array_equal(leaves, predictor.leaves(rows))


def test_bins_of_other_cuts_are_not_used():
    random = np.random.default_rng(18)
    X = random.standard_normal((500, 2))
    forest = engine.train({"n_estimators": 3}, engine.Dataset(X, X.sum(axis=1))).forest
    others = [
        engine.Dataset(X * 1.01),
        engine.Dataset(X, max_bin=16),
        engine.Dataset(np.full_like(X, np.nan)),
        engine.Dataset(X[:, :1]),
    ]
    for other in others:
        predictor = Predictor(forest)
        assert predictor.margins_of_bins(other.plane("cpu"), other.cuts, BASE_MARGIN) is None
        assert predictor.leaves_of_bins(other.plane("cpu"), other.cuts) is None


def test_bins_are_not_used_where_a_byte_does_not_tell_the_thresholds_apart():
    data = engine.Dataset(np.arange(300.0)[:, None], max_bin=300)
    random = np.random.default_rng(19)
    forest = Forest.of([random_tree(random, 1, 1, [cut]) for cut in data.cuts.values])
    assert Predictor(forest).margins_of_bins(data.plane("cpu"), data.cuts, BASE_MARGIN) is None


def test_a_threshold_of_infinity_is_no_cut_but_known_to_bins():
    """It parts present from missing, and bins can tell them apart only if training saw a value."""
    X = np.array([[1.0], [2.0], [np.nan]]).repeat(30, axis=0)
    trees = [tree_of([{"feature": 0, "threshold": np.inf, "missing_left": left, "left": 1, "right": 2},
                      {"value": 1.0}, {"value": 2.0}]) for left in (0, 1)]  # fmt: skip
    data, empty = engine.Dataset(X), engine.Dataset(np.full_like(X, np.nan))
    predictor = Predictor(Forest.of(trees))
    margins = predictor.margins_of_bins(data.plane("cpu"), data.cuts, BASE_MARGIN)
    assert margins.tobytes() == expected_of(X, trees)[0].tobytes()
    assert predictor.margins_of_bins(empty.plane("cpu"), empty.cuts, BASE_MARGIN) is None
