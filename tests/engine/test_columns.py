"""Values: what is exact stays exact, what would not is refused with its place."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.columns import Columns, Table
from engine.errors import DataError


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_integers_are_exact_up_to_two_to_the_53(dtype):
    X = np.array([[2**53, 20180130], [2**53 - 1, 20180131]], dtype)
    assert [array.tolist() for array in Columns.of(X).arrays] == [[2**53, 2**53 - 1], [20180130, 20180131]]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (2**53 + 1, np.int64),
        (-(2**53) - 1, np.int64),
        (-(2**63), np.int64),
        (2**53 + 1, np.uint64),
        (2**64 - 1, np.uint64),
    ],
)
def test_a_larger_integer_is_refused_by_column(value, dtype):
    X = np.zeros((5, 3), dtype)
    X[3, 1] = value
    with pytest.raises(DataError, match=rf"'b' holds {value}, beyond 2\^53"):
        Columns.of(X, ["a", "b", "c"])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@given(data=st.data())
def test_the_first_infinity_is_named(dtype, order, data):
    shape = data.draw(st.sampled_from([(1, 1), (300, 5), (4097, 2), (600, 33)]))
    cells = data.draw(
        st.lists(st.tuples(st.integers(0, shape[1] - 1), st.integers(0, shape[0] - 1)), min_size=1, max_size=3)
    )
    X = np.full(shape, np.finfo(dtype).max, dtype, order)
    X[0, 0] = np.nan
    for feature, row in cells:
        X[row, feature] = data.draw(st.sampled_from([np.inf, -np.inf]))
    feature, row = min(cells)
    with pytest.raises(DataError, match=rf"column 'f{feature}', row {row} is {X[row, feature]}: infinity"):
        Columns.of(X)


def test_an_infinity_in_a_mixed_table():
    frame = pd.DataFrame({"a": np.zeros(9, np.float32), "b": np.arange(9), "c": np.zeros(9)})
    frame.loc[7, "c"] = -np.inf
    with pytest.raises(DataError, match="column 'c', row 7 is -inf"):
        Columns.of(frame)


def test_rows_that_are_left_out_are_not_looked_at_and_rows_keep_their_numbers():
    X = np.array([[np.inf], [1], [np.inf], [2]])
    keep = np.array([False, True, False, True])
    assert Table.of(X).columns(keep).arrays[0].tolist() == [1, 2]
    with pytest.raises(DataError, match="row 2 is inf"):
        Table.of(X).columns(np.array([False, True, True, True]))


def test_arrays_are_read_only():
    X = np.zeros((3, 2))
    array = Columns.of(X).arrays[0]
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    X[0, 0] = 5  # the caller's own array is not locked


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], "1 feature names for 2 columns"),
        (["a", "a"], "'a' is given to two columns"),
        (["a", 1], "feature name 1 is not a string"),
        ("ab", "not the single string 'ab'"),
    ],
)
def test_bad_names_are_refused(names, message):
    with pytest.raises(DataError, match=message):
        Columns.of(np.zeros((2, 2)), names)


def test_names_of_a_mixed_or_doubled_table_are_refused():
    with pytest.raises(DataError, match="feature name 1 is not a string"):
        Columns.of(pd.DataFrame([[1, 2]], columns=["a", 1]))
    with pytest.raises(DataError, match="'a' is given to two columns"):
        Columns.of(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_names_override_those_of_the_table():
    assert Columns.of(pd.DataFrame({"a": [1], "b": [2]}), ["x", "y"]).names == ("x", "y")
