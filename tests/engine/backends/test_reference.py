"""The oracle against arithmetic worked by hand: whatever agrees with it bit by bit inherits these answers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backends import open_backend
from engine.backends.reference import (
    MISSING,
    SAMPLE_ROWS,
    ReferencePlane,
    bin_values,
    find_cuts,
    gradients,
    last_values_of_bins,
    quantile_sample,
    quantile_weights,
    quantise,
)
from engine.errors import SessionError
from engine.growers import GROWERS
from engine.params import parse_params
from tests.engine.growing import grow_on

NAN = float("nan")


def cuts_of(values, *, max_bin=255, weight=None):
    values = np.asarray(values)
    if weight is not None:
        weight = np.asarray(weight, np.float32)
    return find_cuts(values, quantile_weights(weight, len(values)), quantile_sample(len(values)), max_bin)


def plane_of(*columns, like=None):
    columns = [np.asarray(column, np.float64) for column in columns]
    cuts = like.cuts if like else tuple(cuts_of(column) for column in columns)
    return ReferencePlane(np.stack([bin_values(*pair) for pair in zip(columns, cuts, strict=True)]), cuts)


def fit(plane, label, *, weight=None, base_margin=0.0, eval_planes=(), n_trees=1, **params):
    """A backend after a fit whose numbers are easy to follow: no regularisation, no learning rate, if not asked for."""
    plain = {"learning_rate": 1.0, "reg_lambda": 0.0, "min_child_weight": 0.0, "max_leaves": 0}
    params = parse_params(plain | {"n_estimators": n_trees} | params)
    backend = open_backend("reference")
    label = np.asarray(label, np.float32)
    weight = None if weight is None else np.asarray(weight, np.float32)
    grow_on(backend, plane, label, weight, params, np.float32(base_margin), eval_planes)
    return backend


def grow(plane, label, **params):
    return fit(plane, label, **params).end_fit()[0]


def table(tree):
    """A tree as rows of (feature, bin, missing_left, left, right, value, gain, cover, count)."""
    names = ("feature", "bin", "missing_left", "left", "right", "value", "gain", "cover", "count")
    return list(zip(*(getattr(tree, name).tolist() for name in names), strict=True))


def leaf(value, cover, count):
    return (-1, -1, 0, -1, -1, value, 0.0, cover, count)


# ---- one tree by hand --------------------------------------------------------------------------------------------
#
# Six rows in order of their only feature, base margin 0, squared error, so each hessian is 1 and each gradient is
# minus the label:  8  1  2 | -1 -2 -8.  With lambda = 1 a node of n rows and gradient G scores G^2 / (n + 1).

GRADIENTS = [8, 1, 2, -1, -2, -8]
SIX = plane_of([10, 20, 30, 40, 50, 60])
HALF = Fraction(1, 2)


def score(*gradients):
    return Fraction(sum(gradients) ** 2, len(gradients) + 1)


def gain(left, right):
    return HALF * (score(*left) + score(*right) - score(*left, *right))


ROOT_GAINS = [gain(GRADIENTS[: b + 1], GRADIENTS[b + 1 :]) for b in range(5)]
ROOT = (0, 2, 1, 1, 2, 0.0, float(HALF * (Fraction(11**2, 4) + Fraction(11**2, 4) - 0)), 6.0, 6)
LEFT_GAIN = float(HALF * (Fraction(8**2, 2) + Fraction(3**2, 3) - Fraction(11**2, 4)))
RIGHT_GAIN = float(HALF * (Fraction(3**2, 3) + Fraction(8**2, 2) - Fraction(11**2, 4)))
# Half the learning rate of 1 times -G / (n + 1).
FIRST = leaf(float(HALF * Fraction(-8, 2)), 1.0, 1)
SECOND_AND_THIRD = leaf(float(HALF * Fraction(-3, 3)), 2.0, 2)
FOURTH_AND_FIFTH = leaf(float(HALF * Fraction(3, 3)), 2.0, 2)
LAST = leaf(float(HALF * Fraction(8, 2)), 1.0, 1)
LEFT_HALF = leaf(float(HALF * Fraction(-11, 4)), 3.0, 3)
RIGHT_HALF = leaf(float(HALF * Fraction(11, 4)), 3.0, 3)


def grow_six(**params):
    return table(grow(SIX, np.negative(GRADIENTS), reg_lambda=1.0, learning_rate=0.5, **params))


def test_the_root_splits_where_the_fractions_say():
    assert ROOT_GAINS.index(max(ROOT_GAINS)) == ROOT[1]
    assert float(max(ROOT_GAINS)) == ROOT[6]
    assert grow_six(max_depth=1) == [ROOT, LEFT_HALF, RIGHT_HALF]


@pytest.mark.parametrize("grower", ["depthwise", "leafwise"])
def test_four_leaves_node_by_node(grower):
    left = (0, 0, 0, 3, 4, 0.0, LEFT_GAIN, 3.0, 3)
    right = (0, 4, 1, 5, 6, 0.0, RIGHT_GAIN, 3.0, 3)
    leaves = [FIRST, SECOND_AND_THIRD, FOURTH_AND_FIFTH, LAST]
    # No pair is worth splitting: every remaining gain is negative.
    assert max(gain([1], [2]), gain([-1], [-2])) < 0
    assert grow_six(grower=grower) == [ROOT, left, right, *leaves]


@pytest.mark.parametrize("grower", ["depthwise", "leafwise"])
def test_of_two_equal_gains_the_budget_goes_to_the_left(grower):
    assert LEFT_GAIN == RIGHT_GAIN
    left = (0, 0, 0, 3, 4, 0.0, LEFT_GAIN, 3.0, 3)
    assert grow_six(grower=grower, max_leaves=3) == [ROOT, left, RIGHT_HALF, FIRST, SECOND_AND_THIRD]


def test_levelwise_carries_a_node_over_to_the_next_cut():
    # Cut 0 parts only the left half and cut 4 only the right one, at the same gain: the lower bin goes first, and the
    # right half stays in the frontier, where the third level's cut meets it.
    left = (0, 0, 0, 3, 4, 0.0, LEFT_GAIN, 3.0, 3)
    right = (0, 4, 1, 5, 6, 0.0, RIGHT_GAIN, 3.0, 3)
    two_levels = [ROOT, left, RIGHT_HALF, FIRST, SECOND_AND_THIRD]
    three_levels = [ROOT, left, right, FIRST, SECOND_AND_THIRD, FOURTH_AND_FIFTH, LAST]
    assert grow_six(grower="levelwise", max_depth=2) == two_levels
    assert grow_six(grower="levelwise", max_depth=3) == three_levels
    assert grow_six(grower="levelwise") == three_levels


def test_margins_follow_the_leaves_in_training_and_eval_rows():
    values = [-2.0, -0.5, -0.5, 0.5, 0.5, 2.0]  # of the four leaves above, row by row
    eval_plane = plane_of([-1e300, 15, 60, 1e300, NAN], like=SIX)
    backend = fit(SIX, np.negative(GRADIENTS), reg_lambda=1.0, learning_rate=0.5, eval_planes=[SIX, eval_plane])
    assert backend.eval_margins(0).tolist() == values
    # 15 lies on the cut between 10 and 20, so it belongs to the bin above. Missing was never seen: it goes left at
    # the root, whose halves weigh the same, and right in the left half, to its two rows.
    assert backend.eval_margins(1).tolist() == [values[0], values[1], values[5], values[5], values[1]]


def test_the_second_tree_starts_from_the_first_ones_margins():
    trees = fit(SIX, np.negative(GRADIENTS), n_trees=2, max_depth=1).end_fit()
    # Without lambda the halves' values are their mean labels, so the halves no longer differ, and the most is gained
    # by splitting off an outer row, residual 8 - 11/3 = 13/3 from the other five: a gain of (13/3)^2 (1 + 1/5) / 2.
    assert trees[0].value.tolist() == [0.0, np.float32(-11 / 3), np.float32(11 / 3)]
    assert trees[1].bin[0] in (0, 4)
    assert trees[1].gain[0] == pytest.approx(float(HALF * Fraction(13, 3) ** 2 * Fraction(6, 5)), rel=1e-6)


# ---- growth rules ------------------------------------------------------------------------------------------------


def chain_of_gains():
    """Four rows: the root parts two negative gradients from two positive ones, and these differ more."""
    return plane_of([1, 2, 3, 4]), np.negative([-31, -29, 20, 40])


@pytest.mark.parametrize("grower", ["depthwise", "leafwise"])
def test_a_budget_of_three_goes_to_the_larger_gain(grower):
    plane, label = chain_of_gains()
    tree = grow(plane, label, grower=grower, max_leaves=3)
    # Left: (31^2 + 29^2 - 60^2 / 2) / 2 = 1. Right: (20^2 + 40^2 - 60^2 / 2) / 2 = 100.
    assert tree.bin.tolist() == [1, -1, 2, -1, -1]
    assert tree.gain.tolist() == [3600 / 2, 0, 100, 0, 0]


def test_leafwise_prefers_the_older_of_two_equal_leaves():
    # The left half splits first and leaves the pair -101, -99, whose gain is that of 99, 101: (1^2 + 1^2) / 2 = 1.
    tree = grow(plane_of([1, 2, 3, 4, 5]), [101, 99, 50, -99, -101], grower="leafwise", max_leaves=4)
    assert tree.bin.tolist() == [2, 1, 3, -1, -1, -1, -1]
    assert tree.gain[2] == 1.0


@pytest.mark.parametrize("grower", GROWERS)
@pytest.mark.parametrize("max_leaves", range(1, 9))
def test_max_leaves_bounds_the_whole_tree(grower, max_leaves):
    plane, label = plane_of(range(8)), [0, 1, 4, 9, 16, 25, 36, 49]
    leaves = grow(plane, label, grower=grower, max_depth=0, max_leaves=max_leaves).leaf.sum()
    # Each levelwise cut of a single feature falls into one node and adds one leaf.
    assert leaves == max_leaves


def test_levelwise_refuses_a_level_past_the_budget():
    plane, label = chain_of_gains()
    # The second level's best cut splits one node only (bin 2, gain 100) and fits in three leaves, not in two.
    assert len(grow(plane, label, grower="levelwise", max_leaves=3)) == 5
    assert len(grow(plane, label, grower="levelwise", max_leaves=2)) == 3
    assert len(grow(plane, label, grower="levelwise", max_leaves=1)) == 1


def test_levelwise_splits_a_node_at_a_loss_when_the_level_gains():
    # Two features; the first parts -10 from 10, the second then helps the left node by a lot and hurts the right one
    # a little, by gamma: its own gain is -1, the level's is positive.
    a, b = [0, 0, 1, 1], [0, 1, 0, 1]
    gradient = [-30, -10, 20, 20]
    tree = grow(plane_of(a, b), np.negative(gradient), grower="levelwise", gamma=1.0)
    # Left: (30^2 + 10^2 - 40^2 / 2) / 2 - 1 = 99. Right: (20^2 + 20^2 - 40^2 / 2) / 2 - 1 = -1.
    assert tree.feature.tolist() == [0, 1, 1, -1, -1, -1, -1]
    assert tree.gain.tolist()[1:3] == [99.0, -1.0]


def test_levelwise_pays_gamma_for_each_node_it_splits():
    # The second level gains 100 on the left and 0 on the right, and 100 is less than twice 60.
    plane, label = plane_of([0, 0, 1, 1], [0, 1, 0, 1]), [30, 10, -20, -20]
    assert len(grow(plane, label, grower="levelwise", gamma=60.0)) == 3
    assert len(grow(plane, label, grower="depthwise", gamma=60.0)) == 5


def test_depthwise_stops_at_the_loss_that_levelwise_takes():
    a, b = [0, 0, 1, 1], [0, 1, 0, 1]
    tree = grow(plane_of(a, b), np.negative([-30, -10, 20, 20]), gamma=1.0)
    assert tree.feature.tolist() == [0, 1, -1, -1, -1]


def test_gamma_is_the_gain_that_must_be_exceeded():
    plane = plane_of([1, 2])
    # (4^2 + 4^2) / 2 = 16
    assert len(grow(plane, [-4, 4], gamma=16.0)) == 1
    assert grow(plane, [-4, 4], gamma=15.5).gain[0] == 0.5


def test_l1_shrinks_sums_towards_zero():
    tree = grow(plane_of([1, 2]), [-4, 4], reg_alpha=1.0)
    # Left: soft(4) = 3, right: soft(-4) = -3, whole: soft(0) = 0.
    assert tree.gain[0] == (3**2 + 3**2) / 2
    assert tree.value.tolist() == [0.0, -3.0, 3.0]
    assert len(grow(plane_of([1, 2]), [-4, 4], reg_alpha=4.0)) == 1


def test_min_child_weight_and_min_samples_leaf_bound_both_children():
    plane, label = plane_of([1, 2, 3, 4]), [9, 0, 0, 0]
    assert grow(plane, label, max_depth=1).bin[0] == 0
    for limit in ({"min_child_weight": 2.0}, {"min_samples_leaf": 2}):
        assert grow(plane, label, max_depth=1, **limit).count.tolist() == [4, 2, 2]
    for limit in ({"min_child_weight": 2.5}, {"min_samples_leaf": 3}):
        assert len(grow(plane, label, **limit)) == 1


def test_weight_counts_as_so_many_rows_for_min_child_weight_but_not_for_min_samples_leaf():
    plane, label, weight = plane_of([1, 2]), [9, 0], [4, 4]
    assert grow(plane, label, weight=weight, min_child_weight=4.0).cover.tolist() == [8.0, 4.0, 4.0]
    assert len(grow(plane, label, weight=weight, min_samples_leaf=2)) == 1


def test_a_hessian_too_small_for_the_grid_still_counts_as_one_step():
    tree = grow(plane_of([1, 2]), [1, 2], weight=[1.0, 2.0**-40])
    assert tree.cover.tolist() == [1 + 2.0**-27, 1.0, 2.0**-27]


@pytest.mark.parametrize("grower", GROWERS)
@pytest.mark.parametrize("objective", ["squared_error", "logistic", "poisson"])
@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1, width=32), st.integers(1, 7)), min_size=1, max_size=40))
def test_a_whole_weight_is_so_many_copies_of_the_row(grower, objective, rows):
    x, label, weight = (np.array(column) for column in zip(*rows, strict=True))
    plane, copies = plane_of(x), plane_of(np.repeat(x, weight))
    rules = {"grower": grower, "objective": objective, "n_trees": 2, "learning_rate": 0.3, "reg_lambda": 0.7}
    weighted = fit(plane, label, weight=weight, **rules).end_fit()
    repeated = fit(copies, np.repeat(label, weight), **rules).end_fit()
    for one, other in zip(weighted, repeated, strict=True):
        for name in one.arrays().keys() - {"count"}:
            assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name


# ---- ties and missing values -------------------------------------------------------------------------------------


def test_equal_gains_go_to_the_lower_feature_then_the_lower_bin():
    mirrored = [2, -4, 2]
    tree = grow(plane_of([1, 2, 3], [1, 2, 3], [3, 2, 1]), np.negative(mirrored), max_depth=1)
    assert (tree.feature[0], tree.bin[0]) == (0, 0)


@pytest.mark.parametrize("grower", GROWERS)
def test_equal_gains_of_both_directions_send_missing_left(grower):
    # Gradients 0 (missing), -4, 4: the missing row takes as much from either side's score.
    tree = grow(plane_of([NAN, 1, 2]), [0, 4, -4], grower=grower, max_depth=1)
    assert (tree.missing_left[0], tree.count.tolist()) == (1, [3, 2, 1])


@pytest.mark.parametrize("grower", GROWERS)
def test_missing_that_was_never_seen_goes_to_the_heavier_child(grower):
    def missing_left(label, weight=None):
        return grow(plane_of([1, 2, 3]), label, weight=weight, grower=grower, max_depth=1).missing_left[0]

    assert missing_left([9, 0, 0]) == 0
    assert missing_left([0, 0, 9]) == 1
    assert missing_left([9, 0, 0], weight=[3, 1, 1]) == 1
    assert grow(plane_of([1, 2]), [0, 9], grower=grower, max_depth=1).missing_left[0] == 1


def test_levelwise_weighs_unseen_missing_over_the_nodes_that_the_cut_splits():
    # The second level's cut parts b: one row from two in the left node, and leaves alone the right one, where b is 1.
    a, b = [0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 1]
    tree = grow(plane_of(a, b), [-9, -3, -3, 5, 5, 5], grower="levelwise", max_depth=2)
    assert tree.feature.tolist() == [0, 1, -1, -1, -1]
    assert tree.missing_left.tolist()[:2] == [1, 0]


def test_missing_goes_where_it_gains_more():
    x = [NAN, 1, 2]
    left = grow(plane_of(x), [4, 4, -4], max_depth=1)
    right = grow(plane_of(x), [-4, 4, -4], max_depth=1)
    assert (left.missing_left[0], left.count.tolist(), left.value.tolist()) == (1, [3, 2, 1], [0, 4, -4])
    assert (right.missing_left[0], right.count.tolist(), right.value.tolist()) == (0, [3, 1, 2], [0, 4, -4])


def test_the_last_value_bin_parts_present_from_missing():
    tree = grow(plane_of([NAN, 7, NAN, 7]), [-1, 1, -1, 1])
    assert table(tree) == [
        (0, 0, 0, 1, 2, 0.0, (2**2 / 2 + 2**2 / 2) / 2, 4.0, 4),
        leaf(1.0, 2.0, 2),
        leaf(-1.0, 2.0, 2),
    ]


@pytest.mark.parametrize("grower", GROWERS)
@pytest.mark.parametrize("column", [[NAN] * 4, [3.0] * 4], ids=["all missing", "constant"])
def test_nothing_to_split_gives_one_leaf(grower, column):
    tree = grow(plane_of(column), [1, 2, 3, 6], grower=grower)
    assert table(tree) == [leaf(3.0, 4.0, 4)]


@pytest.mark.parametrize("grower", GROWERS)
def test_one_row_gives_one_leaf(grower):
    assert table(grow(plane_of([1.5]), [4], grower=grower)) == [leaf(4.0, 1.0, 1)]


def test_a_feature_unseen_in_training_is_never_split_and_never_read():
    plane = plane_of([NAN] * 4, [1, 2, 3, 4])
    backend = fit(plane, [1, 1, 2, 2], eval_planes=[plane_of([5.0, NAN], [1, 4], like=plane)])
    assert backend.end_fit()[0].feature.tolist() == [1, -1, -1]
    assert backend.eval_margins(0).tolist() == [1.0, 2.0]


# ---- objectives --------------------------------------------------------------------------------------------------


def test_logistic_at_margin_zero():
    # p = 1/2: gradients 1/2 - y, hessians 1/4.
    tree = grow(plane_of([1, 2]), [0, 1], objective="logistic")
    assert table(tree) == [
        (0, 0, 1, 1, 2, 0.0, float(HALF * (Fraction(1, 4) / Fraction(1, 4) * 2)), 0.5, 2),
        leaf(-2.0, 0.25, 1),
        leaf(2.0, 0.25, 1),
    ]


def test_poisson_at_margin_zero():
    # mu = 1: gradients 1 - y, hessians 1.
    tree = grow(plane_of([1, 2]), [0, 3], objective="poisson", reg_lambda=1.0)
    root_gain = HALF * (Fraction(1**2, 2) + Fraction(2**2, 2) - Fraction(1**2, 3))
    assert table(tree) == [
        (0, 0, 1, 1, 2, 0.0, float(root_gain), 2.0, 2),
        leaf(-0.5, 1.0, 1),
        leaf(1.0, 1.0, 1),
    ]


@pytest.mark.parametrize("objective", ["squared_error", "logistic", "poisson"])
@given(st.lists(st.tuples(st.floats(width=32, allow_nan=False), st.floats(2**-126, 2.0**127, width=32)), min_size=1))
def test_no_gradient_is_infinite_and_no_hessian_quantises_to_zero(objective, rows):
    margin, weight = np.array(rows, np.float32).T
    label = np.full(len(rows), 1.0, np.float32)
    g, h = gradients(objective, margin, label, weight)
    assert g.dtype == h.dtype == np.float32
    assert np.isfinite(g).all()
    assert np.isfinite(h).all()
    assert (h >= 0).all()


def test_a_certain_probability_keeps_a_hessian():
    _, h = gradients("logistic", np.array([200, -200], np.float32), np.array([1, 1], np.float32), None)
    assert h.tolist() == [np.float32(1e-16)] * 2


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_quantised_values_fill_28_bits_and_no_more(values):
    values = np.array(values, np.float32)
    q, exponent = quantise(values)
    assert np.abs(q).max() == 0 or 2**27 <= np.abs(q).max() <= 2**28
    worst = max(
        abs(Fraction(int(a)) / Fraction(2) ** exponent - Fraction(float(b))) for a, b in zip(q, values, strict=True)
    )
    assert worst <= HALF / Fraction(2) ** exponent


# ---- cuts and bins -----------------------------------------------------------------------------------------------


def test_few_distinct_values_get_a_bin_each():
    assert cuts_of([3.0, NAN, 1.0, 3.0, -0.0, 0.0]).tolist() == [0.5, 2.0]
    assert cuts_of([3.0, 1.0, 0.0], max_bin=3).tolist() == [0.5, 2.0]
    assert cuts_of([NAN, NAN]).tolist() == cuts_of([5.0, NAN]).tolist() == []


def test_neighbouring_doubles_are_cut_apart():
    for low in (1.0, -1.0, 5e-324, -5e-324, 0.0, 1.7e308, -1.7e308):
        high = np.nextafter(low, np.inf)
        cuts = cuts_of([low, high])
        assert low < cuts[0] <= high
        assert bin_values(np.array([low, high]), cuts).tolist() == [0, 1]


def test_a_float32_column_is_promoted_not_rounded():
    assert cuts_of(np.array([0.1, 0.3], np.float32))[0] == 0.5 * float(np.float32(0.1)) + 0.5 * float(np.float32(0.3))


def test_ids_that_differ_by_one_stay_apart():
    assert cuts_of(np.array([20180130, 20180131])).tolist() == [20180130.5]
    assert cuts_of(np.array([2**53 - 1, 2**53])).tolist() == [2.0**53]  # no double lies between


def test_a_heavy_value_does_not_eat_its_neighbours_bins():
    # Counts 1 1 10 1 1. Of three bins the first should hold 14/3: values up to the second (2) are nearer than up to
    # the third (12). Then 12 are left for two bins: exactly the heavy value's 10 is the nearest to 6 from above.
    counts = np.array([1, 1, 10, 1, 1])
    assert last_values_of_bins(counts.cumsum(), 3) == [1, 2]
    assert cuts_of(np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], counts), max_bin=3).tolist() == [2.5, 3.5]


def test_of_two_shares_as_near_to_even_the_bin_takes_the_larger():
    # Counts 1 2 1 for two bins of 2 each: 1 is as near as 3.
    assert last_values_of_bins(np.array([1, 3, 4]), 2) == [1]


def test_no_cut_is_a_negative_zero():
    assert not np.signbit(cuts_of([-5e-324, -0.0])).any()


def test_weights_move_the_quantiles_as_repeated_rows_do():
    values, counts = np.arange(6.0), np.array([1, 5, 1, 1, 2, 6])
    repeated = cuts_of(np.repeat(values, counts), max_bin=3)
    np.testing.assert_array_equal(cuts_of(values, weight=counts, max_bin=3), repeated)
    np.testing.assert_array_equal(cuts_of(values, weight=counts * 2.0**-100, max_bin=3), repeated)


@given(
    st.lists(st.floats(allow_infinity=False), min_size=1, max_size=60),
    st.integers(2, 20),
    st.randoms(use_true_random=False),
)
def test_cuts_part_the_values_into_no_more_bins_than_asked_and_no_empty_one(values, max_bin, random):
    cuts = cuts_of(values, max_bin=max_bin)
    bins = bin_values(np.array(values), cuts)
    present = bins[bins != MISSING]
    assert (np.diff(cuts) > 0).all()
    assert len(cuts) < max_bin
    assert sorted(set(present.tolist())) == list(range(len(cuts) + 1)) or not present.size
    np.testing.assert_array_equal(bins == MISSING, np.isnan(values))
    np.testing.assert_array_equal(cuts_of(random.sample(values, len(values)), max_bin=max_bin), cuts)


def test_even_quantiles_of_distinct_values():
    assert cuts_of(np.arange(12.0), max_bin=4).tolist() == [2.5, 5.5, 8.5]


def test_the_sample_takes_one_row_of_each_stratum():
    np.testing.assert_array_equal(quantile_sample(SAMPLE_ROWS), np.arange(SAMPLE_ROWS))
    n_rows = 2 * SAMPLE_ROWS + 3
    sample = quantile_sample(n_rows)
    strata = np.arange(SAMPLE_ROWS + 1) * n_rows // SAMPLE_ROWS
    assert len(sample) == SAMPLE_ROWS
    assert (sample >= strata[:-1]).all()
    assert (sample < strata[1:]).all()
    assert 0.45 < np.mean(sample == strata[:-1]) < 0.55


# ---- the backend's life ------------------------------------------------------------------------------------------


def test_close_is_idempotent_and_safe_in_any_state():
    open_backend("reference").close()
    backend = fit(SIX, GRADIENTS)
    backend.begin_tree(1)
    backend.close()
    backend.close()


def test_a_backend_has_one_fit():
    with pytest.raises(SessionError, match="open another one"):
        fit(SIX, GRADIENTS).begin_fit(SIX, np.zeros(6, np.float32), None, parse_params(), np.float32(0))


def test_a_plane_serves_many_fits():
    first = table(grow(SIX, GRADIENTS))
    grow(SIX, np.negative(GRADIENTS), max_depth=2)
    assert table(grow(SIX, GRADIENTS)) == first


def test_eval_margins_are_the_callers_own():
    backend = fit(SIX, GRADIENTS, eval_planes=[SIX])
    kept = backend.eval_margins(0).copy()
    backend.eval_margins(0)[:] = 99
    np.testing.assert_array_equal(backend.eval_margins(0), kept)
