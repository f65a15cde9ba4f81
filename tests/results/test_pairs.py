import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from results.pairs import TARGETS, pairs, ratio_interval, tally
from results.standings import standings
from tests.results.conftest import make_row

RIVALED = ("engine-depthwise", "xgboost-depthwise")
RIVALS = {"xgboost-depthwise": "xgboost", "bonsai-depthwise": "bonsai-gbt"}


def figures(train, ingest=1.0, **changes):
    return {"train_s": train, "ingest_s": ingest, "fit_s": train + ingest, **changes}


def only_case(rows):
    (case,) = pairs(standings(rows))
    return case


def test_every_respect_has_its_own_best_rival(row):
    rows = [
        row(**figures(6.5, ingest=1.0, predict_s=2.0, rss_bytes=90, value=10.02)),
        row(contender="xgboost-depthwise", **figures(10.0, ingest=0.5, predict_s=1.0, rss_bytes=300, value=10.0)),
        row(contender="bonsai-depthwise", **figures(11.0, ingest=4.0, predict_s=8.0, rss_bytes=100, value=99.0)),
    ]
    case = only_case(rows)
    found = {name: (judged.rival, judged.ratio, judged.holds) for name, judged in case.judged.items()}
    assert found == {
        "train": ("xgboost-depthwise", 0.65, True),
        "prep": ("xgboost-depthwise", 2.0, False),
        "memory": ("bonsai-depthwise", 0.9, True),
        "predict": ("xgboost-depthwise", 2.0, False),
        "quality": ("xgboost-depthwise", pytest.approx(0.002), True),
    }
    assert (case.train_s, case.rival_train_s, case.threads) == (6.5, 10.0, 2)
    assert json.loads(json.dumps(tally((case,)))) == {name: [int(ok), 1] for name, (_, _, ok) in found.items()}


@pytest.mark.parametrize(("value", "holds"), [(10.03, True), (10.031, False), (1.0, True), (10.0, True)])
def test_quality_may_be_better_but_hardly_worse(row, value, holds):
    rows = [row(**figures(1.0, value=value)), row(contender="xgboost-depthwise", **figures(1.0, value=10.0))]
    assert only_case(rows).judged["quality"].holds is holds


def test_quality_without_the_paired_rival_is_not_judged(row):
    case = only_case([row(**figures(1.0)), row(contender="bonsai-depthwise", **figures(3.0))])
    assert case.judged["train"].holds
    assert "quality" not in case.judged
    assert tally((case,))["quality"] == (0, 0)


@pytest.mark.parametrize(("ours", "holds"), [(0, True), (1, False)])
def test_nothing_over_nothing_holds_and_is_no_division(row, ours, holds):
    rows = [row(**figures(1.0, rss_bytes=ours)), row(contender="xgboost-depthwise", **figures(1.0, rss_bytes=0))]
    memory = only_case(rows).judged["memory"]
    assert (memory.ratio, memory.holds) == (None, holds)


def test_a_pair_needs_the_engine_and_a_rival_of_the_same_knobs(row):
    engine, other = row(**figures(1.0)), row(contender="bonsai-depthwise", **figures(1.0))
    failed = row(contender="xgboost-depthwise", status="oom", message="killed")
    unlike = row(contender="xgboost-depthwise", knobs_asked={"max_bin": 16}, **figures(9.0))
    for rows in ([], [engine], [other], [engine, failed], [engine, unlike]):
        assert pairs(standings(rows)) == ()


def test_every_number_of_threads_is_a_case(row):
    rows = [
        make
        for threads in (1, 2)
        for make in (
            row(threads=threads, **figures(1.0 * threads)),
            row(threads=threads, contender="xgboost-depthwise", **figures(4.0)),
        )
    ]
    assert [(case.threads, case.judged["train"].ratio) for case in pairs(standings(rows))] == [(1, 0.25), (2, 0.5)]


def test_the_interval_is_of_whole_blocks():
    """A slow spell hits both arms of its block: the ratio of each is 1/2, whatever the seconds."""
    ours, theirs = {0: 1.0, 1: 10.0, 2: 3.0}, {0: 2.0, 1: 20.0, 2: 6.0}
    assert ratio_interval(ours, theirs) == pytest.approx((0.5, 0.5))


def test_the_interval_covers_the_true_ratio_as_often_as_it_says():
    """40 draws of 15 blocks with a ratio of 0.6; fewer than 32 of 40 covered has a chance of 1e-4 at 95 %."""
    draw, covered = np.random.default_rng(1), 0
    for _ in range(40):
        block, noise = np.exp(0.3 * draw.normal(size=15)), np.exp(0.05 * draw.normal(size=(2, 15)))
        low, high = ratio_interval(dict(enumerate(0.6 * block * noise[0])), dict(enumerate(block * noise[1])))
        covered += low <= 0.6 <= high
    assert covered >= 32


def test_too_few_common_blocks_have_no_interval():
    assert ratio_interval({0: 1.0, 1: 1.0, 2: 1.0}, {1: 1.0, 2: 1.0, 3: 1.0}) is None
    assert ratio_interval({}, {}) is None
    assert ratio_interval({0: 0.0, 1: 1.0, 2: 1.0}, {0: 1.0, 1: 1.0, 2: 1.0}) is None


@given(st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)), min_size=3, max_size=5))
def test_the_interval_is_the_same_seen_from_either_side(blocks):
    ours, theirs = (dict(enumerate(seconds)) for seconds in zip(*blocks, strict=True))
    low, high = ratio_interval(ours, theirs)
    back_low, back_high = ratio_interval(theirs, ours)
    assert low <= high
    assert (low * back_high, high * back_low) == pytest.approx((1, 1))


def test_the_targets_are_those_of_the_issue():
    assert TARGETS == {"train": 0.65, "prep": 1.0, "memory": 1.0, "predict": 1.0, "quality": 0.003}


def in_turn(row, contender, values, family="family"):
    """A fit a data set, in blocks of their own."""
    return [
        row(contender=contender, block=n, repeat=n, data_hash=f"fold{n}", data_family=family, **figures(1.0, value=one))
        for n, one in enumerate(values)
        if one is not None
    ]


def test_quality_is_the_mean_over_the_data_sets_with_its_interval(row):
    """+1 %, 0 % and -0.4 %: mean 0.2 %, standard deviation 0.7211 %, t(2) = 4.3027, so 0.2 % ± 1.791 %."""
    ours, theirs = (10.1, 20.0, 29.88), (10.0, 20.0, 30.0)
    rows = [*in_turn(row, "engine-depthwise", ours), *in_turn(row, "xgboost-depthwise", theirs)]
    quality = only_case(rows).judged["quality"]
    assert (quality.ratio, quality.holds) == (pytest.approx(0.002), True)
    assert quality.interval == pytest.approx((0.002 - 0.017914, 0.002 + 0.017914), abs=1e-6)


def test_quality_pairs_by_data_whatever_is_missing(row):
    """Their missing second data set would make us look 50 % worse by a mean against a mean."""
    ours, theirs = (10.0, 90.0, 20.0), (10.0, None, 20.0)
    rows = [*in_turn(row, "engine-depthwise", ours), *in_turn(row, "xgboost-depthwise", theirs)]
    quality = only_case(rows).judged["quality"]
    assert (quality.ratio, quality.holds, quality.interval) == (0.0, True, None)


def test_repeats_of_one_data_set_are_one_figure_of_quality(row):
    rows = [
        row(contender=name, block=block, **figures(1.0, value=value))
        for name, value in (("engine-depthwise", 10.1), ("xgboost-depthwise", 10.0))
        for block in range(5)
    ]
    quality = only_case(rows).judged["quality"]
    assert (quality.ratio, quality.holds, quality.interval) == (pytest.approx(0.01), False, None)


@given(st.lists(st.tuples(st.floats(1, 1e3), st.floats(1, 1e3)), min_size=3, max_size=9))
def test_the_interval_of_quality_is_that_of_scipy(values):
    rows = [one for n, name in enumerate(RIVALED) for one in in_turn(make_row, name, [pair[n] for pair in values])]
    found = only_case(rows).judged["quality"]
    shares = [(ours - theirs) / theirs for ours, theirs in values]
    assert found.ratio == pytest.approx(np.mean(shares))
    assume(np.std(shares) > 1e-6)  # below, SciPy warns of lost precision
    expected = ttest_1samp(shares, 0.0).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high))
