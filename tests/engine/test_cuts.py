"""Cuts against contract §3 written out in plain Python, and against the NumPy oracle where that would take too long."""

import math
from bisect import bisect_left
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import _native
from engine.backends import reference
from engine.columns import Columns
from engine.cuts import Cuts

TINY = float(np.finfo(np.float64).smallest_subnormal)
HUGE = float(np.finfo(np.float64).max)


def expected_cuts(values, weights, max_bin):
    """Cuts of one feature whose rows all fit the sample."""
    present = [(value + 0.0, weight) for value, weight in zip(values, weights, strict=True) if value == value]
    distinct = sorted({value for value, _ in present})
    if len(distinct) <= max_bin:
        return [midpoint(a, b) for a, b in pairwise(distinct)]
    sums = dict.fromkeys(distinct, 0)
    for value, weight in present:
        sums[value] += weight
    cumulative = list(accumulate(sums.values()))
    cuts, start, base = [], 0, 0
    for bins in range(max_bin, 1, -1):
        rest = cumulative[-1] - base
        i = next(i for i in range(start, len(cumulative)) if (cumulative[i] - base) * bins >= rest)
        if i > start and (cumulative[i] - base) * bins - rest > rest - (cumulative[i - 1] - base) * bins:
            i -= 1
        if i == len(cumulative) - 1:
            break
        cuts.append(midpoint(distinct[i], distinct[i + 1]))
        base, start = cumulative[i], i + 1
    return cuts


def midpoint(a, b):
    middle = 0.5 * a + 0.5 * b
    return middle if a < middle <= b else b


def quantile_weights(weight):
    exponent = 27 - math.frexp(float(weight.max()))[1] + 1
    return [max(1, round(math.ldexp(float(w), exponent))) for w in weight]


def values_of(width):
    floats = st.floats(allow_nan=True, allow_infinity=False, width=width)
    awkward = [0.0, -0.0, 1.0, -1.0, math.nan, float(np.finfo(f"f{width // 8}").smallest_subnormal)]
    awkward += [float(np.finfo(f"f{width // 8}").max), -float(np.finfo(f"f{width // 8}").max)]
    if width == 64:
        awkward += [20180130.0, 20180131.0, 2.0**53, 2.0**53 - 1, 1e308, -1e308, 5e-324, 1e-310]
    return st.one_of(floats, st.sampled_from(awkward), st.integers(-3, 3).map(float))


@pytest.mark.parametrize("width", [32, 64])
@given(data=st.data())
def test_cuts_follow_the_contract(width, data):
    n_rows, n_features = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 3))
    rows = data.draw(
        st.lists(st.lists(values_of(width), min_size=n_features, max_size=n_features), min_size=n_rows, max_size=n_rows)
    )
    X = np.array(rows, f"f{width // 8}", order=data.draw(st.sampled_from("CF")))
    weight = None
    if data.draw(st.booleans()):
        positive = st.floats(2.0**-140, 2.0**120, width=32)
        weight = np.array(data.draw(st.lists(positive, min_size=n_rows, max_size=n_rows)), np.float32)
    max_bin = data.draw(st.integers(2, 20))

    cuts = Cuts.find(Columns.of(X), weight, max_bin)

    weights = [1] * n_rows if weight is None else quantile_weights(weight)
    for feature in range(n_features):
        values = [float(value) for value in X[:, feature]]
        assert cuts.of(feature).tolist() == expected_cuts(values, weights, max_bin)
        all_missing = all(math.isnan(value) for value in values)
        assert cuts.value_bins[feature] == (0 if all_missing else len(cuts.of(feature)) + 1)


def oracle_cuts(X, weight, max_bin):
    sample = reference.quantile_sample(len(X))
    weights = reference.quantile_weights(weight, len(X))
    return [reference.find_cuts(values, weights, sample, max_bin) for values in X.T]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_more_rows_than_the_sample_holds(dtype, weighted):
    random = np.random.default_rng(7)
    n_rows = 2**18 + 54_321
    X = np.column_stack(
        [
            random.standard_normal(n_rows),
            random.standard_exponential(n_rows) ** 4,
            random.integers(0, 255, n_rows),
            np.where(random.random(n_rows) < 0.9, 0, random.standard_normal(n_rows)),
            20180101.0 + random.integers(0, 400, n_rows),
        ]
    ).astype(dtype)
    X[random.random(X.shape) < 0.05] = np.nan
    weight = random.exponential(size=n_rows).astype(np.float32) if weighted else None
    if weighted:
        weight[-1] = 2e5  # the scale is that of all rows, whether sampled or not
    cuts = Cuts.find(Columns.of(X), weight, 255)
    for feature, expected in enumerate(oracle_cuts(X, weight, 255)):
        assert cuts.of(feature).tolist() == expected.tolist()


def test_values_that_the_sample_never_sees():
    n_rows = 2**19
    X = np.full((n_rows, 2), np.nan)
    unsampled = np.setdiff1d(np.arange(n_rows), reference.quantile_sample(n_rows))
    X[unsampled, 0] = np.arange(len(unsampled))
    X[unsampled, 1] = np.arange(len(unsampled))
    X[reference.quantile_sample(n_rows)[:3], 1] = [5, 6, 9]
    cuts = Cuts.find(Columns.of(X), None, 255)
    assert cuts.value_bins.tolist() == [1, 3]
    assert cuts.of(1).tolist() == [5.5, 7.5]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_more_categories_than_bins_fit(dtype):
    X = np.random.default_rng(0).permutation(70_000).astype(dtype)[:, None]
    cuts = Cuts.find(Columns.of(X), None, 65535)
    assert cuts.of(0).tolist() == oracle_cuts(X, None, 65535)[0].tolist()
    assert cuts.value_bins.tolist() == [65535]
    assert cuts.wide


def test_as_many_categories_as_bins_get_one_each():
    X = np.random.default_rng(0).permutation(np.tile(np.arange(65535.0), 2))[:, None]
    cuts = Cuts.find(Columns.of(X), None, 65535)
    assert cuts.of(0).tolist() == (np.arange(65534) + 0.5).tolist()


@pytest.mark.parametrize(
    ("values", "cuts"),
    [
        ([3.0], []),
        ([3.0, 3.0], []),
        ([math.nan, math.nan], []),
        ([0.0, -0.0], []),
        ([0.0, TINY], [TINY]),
        ([-TINY, 0.0], [0.0]),
        ([TINY, 3 * TINY], [2 * TINY]),
        ([-HUGE, HUGE], [0.0]),
        ([HUGE / 2, HUGE], [HUGE * 0.75]),
        ([1.0, np.nextafter(1.0, 2)], [np.nextafter(1.0, 2)]),
        ([20180130, 20180131], [20180130.5]),
        ([2.0**53 - 1, 2.0**53], [2.0**53]),
    ],
)
def test_single_features(values, cuts):
    assert Cuts.find(Columns.of(np.array(values)[:, None]), None, 255).of(0).tolist() == cuts


def test_one_heavy_value_does_not_eat_its_neighbours_bins():
    values = np.concatenate([np.zeros(900), np.arange(1, 101)])
    assert len(Cuts.find(Columns.of(values[:, None]), None, 11).of(0)) == 10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layout_and_threads_change_nothing(dtype):
    random = np.random.default_rng(3)
    C = random.standard_normal((2000, 37)).astype(dtype)
    C[:, ::5] = np.round(C[:, ::5])
    weight = random.random(2000, dtype=np.float32) + 0.1
    layouts = [C, np.asfortranarray(C), np.repeat(C, 2, axis=1)[:, ::2], C[::-1, ::-1].copy()[::-1, ::-1]]
    found = [
        Cuts(*_native.find_cuts(Columns.of(X).arrays, weight, 100, threads)) for X in layouts for threads in (1, 2, 5)
    ]
    assert all(cuts == found[0] for cuts in found)


def test_float32_and_the_same_values_as_float64_are_cut_alike():
    X = np.random.default_rng(5).standard_normal((3000, 4)).astype(np.float32)
    assert Cuts.find(Columns.of(X), None, 255) == Cuts.find(Columns.of(X.astype(np.float64)), None, 255)


def test_equality_is_by_content():
    one, same, other = (
        Cuts.find(Columns.of(np.array(rows)), None, 255) for rows in ([[1.0], [2]], [[1.0], [2]], [[1.0], [3]])
    )
    assert one == same
    assert one != other
    assert one != Cuts.find(Columns.of(np.array([[1.0, 7], [2, 7]])), None, 255)
    assert one != "cuts"


def test_cuts_are_read_only_and_ascend():
    X = np.random.default_rng(5).standard_normal((3000, 4))
    cuts = Cuts.find(Columns.of(X), None, 255)
    for array in (cuts.values, cuts.offsets, cuts.value_bins, cuts.of(2)):
        assert not array.flags.writeable
    assert all((np.diff(cuts.of(feature)) > 0).all() for feature in range(4))
    assert not cuts.wide


def test_no_cut_splits_what_binary_search_would_not_find():
    """Every distinct value of a low-cardinality feature has a bin of its own."""
    values = np.random.default_rng(1).standard_normal(255)
    cuts = Cuts.find(Columns.of(values[:, None]), None, 255).of(0).tolist()
    assert sorted(bisect_left(cuts, value) for value in values) == list(range(255))
