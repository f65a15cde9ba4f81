import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from results.series import Cell, git_order, measured, series_of
from tests.results.history import commit, fit


def names(series):
    return [point.commit for point in series.points]


def test_one_series_a_cell(row):
    rows = [fit(0), fit(1), fit(0, threads=4), fit(0, contender="lightgbm"), fit(0, knobs_asked={"max_bin": 64})]
    other = {"digest": "another host"}
    rows.append(fit(0, passport_before=other, passport_after=other))
    found = series_of(rows, {})
    assert sorted(len(one.points) for one in found) == [1, 1, 1, 1, 2]
    assert Cell.of(rows[0]).difference(Cell.of(rows[-1])) == ["passport"]


def test_rows_that_are_not_to_be_compared_are_passed_over():
    bad = [fit(0, valid=False, invalid_reason="throttled"), fit(1, status="oom", message="no memory")]
    assert series_of(bad, {}) == []


def test_gits_order_goes_before_time():
    rows = [fit(place) for place in range(4)]
    late_measured_parent = rows[0].model_copy(update={"ts": datetime(2027, 1, 1, tzinfo=UTC)})
    (series,) = series_of([*rows[1:], late_measured_parent], {commit(place): place for place in range(4)})
    assert names(series) == [commit(place) for place in range(4)]


def test_what_git_does_not_know_stands_where_its_time_puts_it():
    rows = [fit(place) for place in range(5)]
    known = {commit(place): place for place in (0, 2, 4)}
    (series,) = series_of(rows, known)
    assert names(series) == [commit(place) for place in range(5)]
    (series,) = series_of(rows, {})
    assert names(series) == [commit(place) for place in range(5)]


def test_edits_of_one_commit_are_points_of_their_own():
    later = fit(0).ts + timedelta(hours=1)
    rows = [
        fit(0),
        fit(0, dirty=True, release="0.1.0+dabc", ts=later),
        fit(0, dirty=True, release="0.1.0+ddef", ts=later),
    ]
    (series,) = series_of(rows, {commit(0): 7})
    assert [point.name for point in series.points] == ["0000000000", "0000000000+dabc", "0000000000+ddef"]


@pytest.mark.parametrize(
    ("measure", "expected"),
    [("ingest_s", 0.3), ("bytes", 30), ("phase:histogram", 1.0), ("phase:none", None), ("device_bytes", None)],
)
def test_measures(measure, expected):
    assert measured(fit(0, bytes_up=10, bytes_down=20), measure) == expected


def test_bytes_need_both_ways():
    assert measured(fit(0, bytes_up=10), "bytes") is None


def test_order_of_a_repository(tmp_path):
    def git(*words):
        return subprocess.run(
            ["git", "-C", tmp_path, *words], check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q")
    made = []
    for _ in range(3):
        git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "x")
        made.append(git("rev-parse", "HEAD"))
    order = git_order(tmp_path)
    assert sorted(order, key=order.get) == made
    assert git_order(tmp_path / "nowhere") == {}


def test_data_seen_in_turn_are_one_series_that_earlier_rows_of_one_of_them_join():
    new = [fit(1, data_hash=f"fold{n}", data_family="all", block=n) for n in range(3)]
    (series,) = series_of([fit(0, data_hash="fold0"), *new], {})
    assert [len(point.rows) for point in series.points] == [1, 3]
    assert [[len(point.rows) for point in one.points] for one in series.by_data()] == [[1, 1], [1], [1]]
    assert len(series_of([fit(0, data_hash="fold0"), fit(0, data_hash="fold1")], {})) == 2
