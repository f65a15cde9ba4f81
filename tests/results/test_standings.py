import json
import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.render import describe
from results.standings import Timing, compare, standings

SECONDS = st.floats(1e-3, 1e4)


def rival(row, **changes):
    return row(**{"contender": "xgboost-depthwise", "library": "xgboost", "version": "3.2.0", **changes})


def timed(seconds):
    return {"train_s": seconds, "ingest_s": 0.0, "fit_s": seconds}


def only_pair(rows):
    (table,) = standings(rows).tables
    (pair,) = table.pairs
    return table, pair


def test_no_rows_make_no_tables():
    found = standings([])
    assert found.tables == ()
    assert not found.measured_anything


def test_figures_are_medians_over_repeats(row):
    seconds = [1.5, 1.0, 4.0, 2.0]
    rows = [row(repeat=k, value=10.0 + k, rss_bytes=k, **timed(s)) for k, s in enumerate(seconds)]
    _, pair = only_pair(rows)
    (entry,) = pair.entries
    assert (entry.n, entry.train.median, entry.train.low, entry.train.high) == (4, 1.75, 1.0, 4.0)
    assert entry.train.spread == (4.0 - 1.0) / 1.75
    # Quartiles by linear interpolation of 1.0, 1.5, 2.0, 4.0 at ranks 0.75 and 2.25.
    assert entry.train.interquartile == pytest.approx((2.0 + 0.25 * 2.0) - (1.0 + 0.75 * 0.5))
    assert (entry.value, entry.rss_bytes) == (11.5, 1.5)
    assert entry.train_comparison is None


def test_a_margin_outside_the_wider_spread_decides(row):
    engine = [row(repeat=k, **timed(s)) for k, s in enumerate([1.00, 1.02])]
    for seconds, verdict in [
        ([1.20, 1.21], "faster"),
        ([0.80, 0.81], "slower"),
        ([1.02, 1.03], "tie"),
        ([0.9, 1.3], "tie"),
    ]:
        _, pair = only_pair(engine + [rival(row, repeat=k, **timed(s)) for k, s in enumerate(seconds)])
        found = next(entry for entry in pair.entries if not entry.is_engine)
        assert found.train_comparison.verdict == verdict
        assert found.train_comparison.ratio == pytest.approx(sum(seconds) / 2.02)


@given(st.lists(SECONDS, min_size=2, max_size=5), st.lists(SECONDS, min_size=2, max_size=5))
def test_winning_and_losing_are_the_same_rule(ours, theirs):
    a, b = Timing.of(ours), Timing.of(theirs)
    forth, back = compare(a, len(ours), b, len(theirs)), compare(b, len(theirs), a, len(ours))
    assert {"faster": "slower", "slower": "faster", "tie": "tie"}[forth.verdict] == back.verdict
    assert forth.ratio * back.ratio == pytest.approx(1)
    if forth.verdict == "faster":
        assert a.median < b.median


def test_one_repeat_decides_nothing(row):
    _, pair = only_pair([row(**timed(1.0)), rival(row, **timed(50.0)), rival(row, repeat=1, **timed(50.0))])
    assert [entry.train_comparison.verdict for entry in pair.entries if not entry.is_engine] == ["unrepeated"]


def test_a_time_of_zero_is_never_divided_by(row):
    _, pair = only_pair([row(**timed(0.0)), rival(row, **timed(0.0))])
    assert [entry.train_comparison for entry in pair.entries] == [None, None]
    assert [entry.train.spread for entry in pair.entries] == [0.0, 0.0]


def test_other_knobs_are_a_refusal(row):
    rows = [make(knobs_asked={"max_bin": bins}, repeat=k) for k in range(2) for make, bins in [(row, 255)]]
    rows += [rival(row, knobs_asked={"max_bin": 254}, repeat=k, **timed(9.0)) for k in range(2)]
    _, pair = only_pair(rows)
    assert pair.entries[1].train_comparison.verdict == "other knobs"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"commit": "fedcba9"}, "commit fedcba9 instead of 0123456789abcdef0123"),
        ({"dirty": True}, "dirty True instead of False"),
        ({"scale": 0.1}, "scale 0.1 instead of 1.0"),
        ({"device": "cuda"}, "device cuda instead of cpu"),
        ({"timing_mode": "pipeline"}, "timing mode pipeline instead of in_memory"),
        ({"data_hash": "0ther"}, "data hash 0ther instead of feedface"),
        ({"passport_before": {"digest": "p2"}, "passport_after": {"digest": "p2"}}, "passport p2 instead of"),
        ({"version": "0.0.9"}, "engine-depthwise version 0.0.9 instead of 0.1.0"),
        ({"knobs_asked": {}}, "engine-depthwise with other knobs"),
        ({"metric": "mae"}, "engine-depthwise with other knobs or another metric"),
    ],
)
def test_rows_of_another_class_are_left_out_and_counted(row, changes, said):
    newest = row(**timed(1.0))
    older = [row(ts=newest.ts - timedelta(hours=hours), **timed(9.0), **changes) for hours in (1, 2)]
    table, pair = only_pair([newest, *older])
    assert [(entry.n, entry.train.median) for entry in pair.entries] == [(1, 1.0)]
    (left_out,) = table.left_out
    assert left_out.count == 2
    assert said in left_out.reason


def test_nothing_is_dropped_silently(fixture_rows):
    found = standings(fixture_rows)
    placed = sum(entry.n for table in found.tables for pair in table.pairs for entry in pair.entries)
    unplaced = sum(item.count for table in found.tables for pair in table.pairs for item in pair.unplaced)
    left_out = sum(item.count for table in found.tables for item in table.left_out)
    assert min(placed, unplaced, left_out) > 0
    assert placed + unplaced + left_out == len(fixture_rows)


def test_the_order_of_rows_does_not_matter(fixture_rows):
    expected = standings(fixture_rows)
    for seed in range(5):
        shuffled = fixture_rows.copy()
        random.Random(seed).shuffle(shuffled)
        assert standings(shuffled) == expected


def test_failures_and_invalid_rows_keep_their_place(row):
    nothing = {"status": "oom", "message": "killed at 3 GiB", "data_hash": None}
    rows = [row(), rival(row, **nothing), rival(row, **nothing), row(valid=False, invalid_reason="loaded host")]
    _, pair = only_pair(rows)
    assert [entry.n for entry in pair.entries] == [1]
    found = [(item.contender, item.status, item.message, item.count) for item in pair.unplaced]
    assert found == [
        ("engine-depthwise", "invalid", "loaded host", 1),
        ("xgboost-depthwise", "oom", "killed at 3 GiB", 2),
    ]


def test_a_newest_row_that_never_saw_the_data_joins_those_that_did(row):
    measured = row()
    failed = rival(row, ts=measured.ts + timedelta(minutes=1), status="error", message="no such file", data_hash=None)
    table, pair = only_pair([failed, measured])
    assert table.row_class.data_hash == measured.data_hash
    assert (len(pair.entries), len(pair.unplaced), table.left_out) == (1, 1, ())


def test_a_rung_where_all_failed_is_still_a_table(row):
    failed = row(status="timeout", message="300 s", data_hash=None)
    found = standings([failed])
    assert len(found.tables) == 1
    assert not found.measured_anything


def test_growths_and_rungs_are_apart(row):
    rows = [row(), row(growth="leafwise", contender="lightgbm"), row(rung="late"), row(ladder="tall")]
    found = standings(rows)
    assert [(table.ladder, table.rung) for table in found.tables] == [
        ("flights", "delay"),
        ("flights", "late"),
        ("tall", "delay"),
    ]
    assert [pair.growth for pair in found.tables[0].pairs] == ["depthwise", "leafwise"]
    assert not found.tally(), "no rival stands beside an engine"


def test_every_number_of_threads_has_its_own_newest_class(row):
    newest = row(**timed(1.0))
    rows = [newest, row(threads=1, ts=newest.ts - timedelta(hours=1), commit="fedcba9", **timed(2.0))]
    found = standings(rows)
    assert [table.row_class.threads for table in found.tables] == [1, 2]
    assert [table.pairs[0].entries[0].train.median for table in found.tables] == [2.0, 1.0]
    assert not any(table.left_out for table in found.tables)


def test_a_block_measured_again_counts_its_median(row):
    rows = [row(block=block, **timed(s)) for block, s in [(0, 1.0), (0, 3.0), (1, 5.0)]]
    _, pair = only_pair(rows)
    assert pair.entries[0].train_by_block == {0: 2.0, 1: 5.0}
    assert pair.entries[0].n == 3


def test_the_tally_counts_every_comparison(fixture_rows):
    found = standings(fixture_rows)
    verdicts = [
        entry.train_comparison.verdict
        for table in found.tables
        for pair in table.pairs
        for entry in pair.entries
        if entry.train_comparison
    ]
    assert sum(found.tally().values()) == len(verdicts)
    assert set(verdicts) == {"faster", "slower", "tie", "unrepeated", "other knobs"}
    assert json.dumps(dict(found.tally()))


def test_data_seen_in_turn_are_one_class_and_their_mean_one_metric(row):
    seen = [
        row(block=n, repeat=n, data_hash=f"fold{n}", data_family="all", value=float(value), n_rows=100 + n)
        for n, value in enumerate((10, 20, 60))
    ]
    again = row(block=3, repeat=3, data_hash="fold0", data_family="all", value=12.0, n_rows=100)
    (table,) = standings([*seen, again]).tables
    assert table.row_class.data_hash == "all"
    assert table.left_out == ()
    (entry,) = table.pairs[0].entries
    assert entry.value_by_data == {"fold0": 11.0, "fold1": 20.0, "fold2": 60.0}
    assert (entry.value, entry.n, entry.n_rows) == (pytest.approx(91 / 3), 4, 100)
    assert "3 data sets in turn all" in describe(table)


def test_one_data_set_and_a_family_are_not_compared(row):
    later = row(data_family="all", ts=row().ts + timedelta(minutes=1))
    (table,) = standings([row(), later]).tables
    assert [item.reason for item in table.left_out] == ["data hash feedface instead of all"]
