"""Bins of the native plane: the number of cuts <= x, by plain bisection, in both layouts."""

import math
from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import _native
from engine.columns import Columns
from engine.cuts import Cuts

LARGEST = float(np.finfo(np.float32).max)
SMALLEST = float(np.finfo(np.float32).smallest_subnormal)


def make_plane(X, cuts, n_threads=2):
    return _native.make_plane(Columns.of(X).arrays, cuts.values, cuts.offsets, cuts.value_bins, n_threads)


def cuts_of(*features):
    """Cuts given feature by feature; None is a feature that training never saw a value of."""
    values = [np.array(cuts or [], np.float64) for cuts in features]
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int64)
    value_bins = [0 if cuts is None else len(cuts) + 1 for cuts in features]
    return Cuts(np.concatenate(values), offsets, np.array(value_bins, np.int32))


def expected_bins(X, cuts):
    def bin_of(value, feature):
        if math.isnan(value) or cuts.value_bins[feature] == 0:
            return int(cuts.value_bins[feature])
        return bisect_right(cuts.of(feature).tolist(), float(value))

    return [[bin_of(value, feature) for feature, value in enumerate(row)] for row in X]


def assert_binned(X, cuts):
    plane = make_plane(X, cuts)
    expected = expected_bins(X, cuts)
    np.testing.assert_array_equal(_native.row_bins(plane), expected)
    np.testing.assert_array_equal(_native.column_bins(plane), expected)
    return plane


edges = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=64),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.sampled_from([0.0, SMALLEST / 2, -SMALLEST / 2, SMALLEST, LARGEST, 2 * LARGEST, -2 * LARGEST, 5e-324, -5e-324]),
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(cuts=st.lists(edges, max_size=40, unique=True), data=st.data())
def test_a_bin_is_the_number_of_cuts_not_above(dtype, cuts, data):
    """Values lie at, just below and just above the cuts, whether or not float32 can say them."""
    cuts = sorted({cut + 0.0 for cut in cuts})
    near = [0.0, -0.0, math.nan, SMALLEST, -SMALLEST]
    with np.errstate(over="ignore"):
        for cut in np.array(cuts, np.float64).astype(dtype):
            near += [cut, np.nextafter(cut, dtype(np.inf)), np.nextafter(cut, dtype(-np.inf))]
    values = np.array(near, dtype)
    assert_binned(values[~np.isinf(values)][:, None], cuts_of(cuts))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [1, 15, 16, 17, 40])
@pytest.mark.parametrize("n_rows", [1, 255, 256, 257, 700])
def test_every_shape_layout_and_thread_count(n_rows, n_features, dtype):
    random = np.random.default_rng(n_rows * n_features)
    X = random.standard_normal((n_rows, n_features)).astype(dtype)
    X[random.random(X.shape) < 0.1] = np.nan
    cuts = Cuts.find(Columns.of(X), None, int(random.integers(2, 256)))
    assert not assert_binned(X, cuts).wide
    expected = _native.row_bins(make_plane(X, cuts))
    for layout in (np.asfortranarray(X), np.repeat(X, 3, axis=0)[::3], X[::-1, ::-1].copy()[::-1, ::-1]):
        for n_threads in (1, 2, 5):
            plane = make_plane(layout, cuts, n_threads)
            np.testing.assert_array_equal(_native.row_bins(plane), expected)
            np.testing.assert_array_equal(_native.column_bins(plane), expected)


@pytest.mark.parametrize("n_bins", [2, 3, 254, 255, 256, 257, 5000])
def test_every_number_of_bins(n_bins):
    values = np.arange(n_bins, dtype=np.float64)
    X = np.column_stack([np.append(values, np.nan), np.append(values[::-1], -1)])
    plane = assert_binned(X, Cuts.find(Columns.of(X), None, 65535))
    assert plane.wide == (n_bins + 1 > 255)
    assert plane.value_bins == [n_bins, n_bins + 1]


def test_columns_of_mixed_types():
    import pandas as pd

    random = np.random.default_rng(2)
    frame = pd.DataFrame({f"c{i}": random.standard_normal(400).astype(["f4", "f8"][i // 3 % 2]) for i in range(20)})
    cuts = Cuts.find(Columns.of(frame), None, 64)
    plane = make_plane(frame, cuts)
    np.testing.assert_array_equal(_native.row_bins(plane), expected_bins(frame.to_numpy(np.float64), cuts))


def test_values_outside_what_training_saw_go_to_the_ends():
    cuts = cuts_of([1.5, 2.5])
    assert _native.row_bins(make_plane(np.array([[-1e308], [1e308]]), cuts)).ravel().tolist() == [0, 2]


def test_a_value_where_training_saw_none_goes_where_missing_goes():
    plane = assert_binned(np.array([[5.0, 1], [np.nan, 1]]), cuts_of(None, [0.5]))
    assert _native.row_bins(plane)[:, 0].tolist() == [0, 0]


def test_a_constant_matrix_without_strides():
    X = np.broadcast_to(np.float32(3), (300, 20))
    plane = make_plane(X, Cuts.find(Columns.of(X), None, 255))
    assert not _native.row_bins(plane).any()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([np.zeros((2, 2))], "one-dimensional"),
        ([np.zeros(2), np.zeros(3)], "one length"),
        ([np.zeros(2, int)], "float32 or"),
    ],
)
def test_the_module_refuses_other_columns(columns, message):
    with pytest.raises(ValueError, match=message):
        _native.find_cuts(columns, None, 255, 1)


def test_the_module_refuses_cuts_that_do_not_fit():
    cuts = cuts_of([1.0], [2.0])
    with pytest.raises(ValueError, match="do not fit"):
        make_plane(np.zeros((2, 3)), cuts)
    with pytest.raises(ValueError, match="do not fit"):
        make_plane(np.zeros((2, 2)), Cuts(cuts.values, cuts.offsets, np.array([2, 9], np.int32)))
