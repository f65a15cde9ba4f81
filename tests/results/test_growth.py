from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.growth import Point, growth, longest_series, slope
from results.standings import standings

KNOBS = {"max_depth": 8, "max_leaves": 0, "max_bin": 255}
RIVAL = "xgboost-depthwise"


@pytest.fixture
def fit(row):
    """A row at a point, whose rung is named by it."""

    def make(seconds, contender="engine-depthwise", rows=1000, columns=10, threads=2, block=0, knobs=(), **changes):
        asked = {**KNOBS, **dict(knobs)}
        return row(
            contender=contender,
            rung=f"{rows}-{columns}-{asked}",
            n_rows=rows,
            n_features=columns,
            threads=threads,
            block=block,
            repeat=block,
            knobs_asked=asked,
            **{"train_s": seconds, "ingest_s": 0.0, "fit_s": seconds, **changes},
        )

    return make


def only_axis(rows):
    (one,) = growth(standings(rows))
    return one


def test_time_in_proportion_to_rows_has_a_slope_of_one(fit):
    sizes = (1000, 2000, 8000)
    rows = [fit(n * 1e-3, rows=n) for n in sizes] + [fit((n / 100) ** 2, RIVAL, rows=n) for n in sizes]
    one = only_axis(rows)
    assert (one.axis, one.at) == ("rows", sizes)
    assert one.fixed == {"columns": 10, "depth": 8, "bins": 255, "threads": 2}
    assert [(found.contender, found.value) for found in one.slopes] == [
        ("engine-depthwise", pytest.approx(1)),
        (RIVAL, pytest.approx(2)),
    ]
    assert one.verdict == "flatter"


def test_depth_counts_doublings_a_level_and_leaves_by_their_logarithm(fit):
    deep = [fit(2.0**depth, knobs={"max_depth": depth}) for depth in (4, 6, 8)]
    assert only_axis(deep).slopes[0].value == pytest.approx(1)
    leaves = [fit(4.0**depth, knobs={"max_depth": 0, "max_leaves": 2**depth}) for depth in (4, 6, 8)]
    one = only_axis(leaves)
    assert (one.axis, one.at) == ("depth", (4.0, 6.0, 8.0))
    assert one.slopes[0].value == pytest.approx(2)


def test_one_point_serves_every_axis(fit):
    points = [{}, {"rows": 2000}, {"columns": 20}, {"threads": 1}, {"knobs": {"max_bin": 16}}]
    found = growth(standings([fit(1.0, **point) for point in points]))
    assert [(one.axis, len(one.at)) for one in found] == [("rows", 2), ("columns", 2), ("bins", 2), ("threads", 2)]
    assert all(one.slopes[0].value == pytest.approx(0) and one.verdict is None for one in found)


def two_blocks(fit, contender, slopes):
    """Two blocks at 1,000 and 2,000 rows, with the slope of each."""
    return [
        fit(seconds, contender, rows=rows, block=block)
        for block, value in enumerate(slopes)
        for rows, seconds in ((1000, 1.0), (2000, 2.0**value))
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict", "holds"),
    [
        ([0.9, 0.9], [1.0, 1.0], "flatter", True),
        ([1.1, 1.2], [1.0, 1.0], "steeper", False),
        ([1.1, 1.2], [0.9, 1.2], "tie", True),
        ([1.1], [1.0, 1.0], "unrepeated", False),
        ([1.0], [1.0], "flatter", True),
    ],
)
def test_a_margin_within_the_wider_spread_is_a_tie(fit, ours, theirs, verdict, holds):
    one = only_axis(two_blocks(fit, "engine-depthwise", ours) + two_blocks(fit, RIVAL, theirs))
    assert (one.verdict, one.holds) == (verdict, holds)


def test_the_best_rival_is_the_flattest(fit):
    rows = [
        *two_blocks(fit, "engine-depthwise", [1.0, 1.0]),
        *two_blocks(fit, RIVAL, [1.5, 1.5]),
        *two_blocks(fit, "bonsai-depthwise", [0.5, 0.5]),
    ]
    one = only_axis(rows)
    assert one.slopes[0].contender == "bonsai-depthwise"
    assert one.verdict == "steeper"


def test_a_contender_that_lacks_a_point_has_no_slope(fit):
    rows = [fit(1.0), fit(2.0, rows=2000), fit(1.0, RIVAL), fit(1.0, RIVAL, rows=2000, status="oom", message="killed")]
    one = only_axis(rows)
    assert [found.contender for found in one.slopes] == ["engine-depthwise"]
    assert one.verdict is None
    assert not one.holds


def test_two_hosts_or_commits_make_no_slope(fit):
    old = fit(1.0, rows=2000, commit="fedcba9")
    newest = fit(1.0, ts=old.ts + timedelta(hours=1))
    assert growth(standings([old, newest])) == ()
    assert growth(standings([])) == ()


def test_rows_without_a_shape_or_those_knobs_are_passed_over(fit, row):
    assert growth(standings([row(), row(rung="other"), fit(1.0)])) == ()


@given(st.floats(0.1, 3), st.floats(-3, 3))
def test_a_power_law_gives_its_exponent(factor, power):
    at = [10, 20, 80]
    assert slope("columns", at, [factor * x**power for x in at]) == pytest.approx(power, abs=1e-9)


def test_the_longest_series_differs_in_one_thing_only():
    base = Point(100, 10, 8.0, 255, 2)
    along = [base, Point(200, 10, 8.0, 255, 2), Point(400, 10, 8.0, 255, 2)]
    others = [Point(100, 20, 8.0, 255, 2), Point(200, 20, 8.0, 255, 2)]
    assert longest_series("rows", [*others, *reversed(along)]) == along
    assert longest_series("columns", along + others) == [base, others[0]]
    assert longest_series("rows", []) == []
