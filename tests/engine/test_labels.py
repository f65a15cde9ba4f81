"""Labels and weights: float32, or refused with row and value."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from engine.errors import DataError
from engine.labels import check_labels, check_weights

TINY = float(np.finfo(np.float32).smallest_subnormal)


@pytest.mark.parametrize(
    "given",
    [
        [0, 1, 2],
        (0.0, 1.0, 2.0),
        np.arange(3),
        np.arange(3, dtype=np.float16),
        np.arange(3, dtype=np.longdouble),
        np.arange(3, dtype=">i4"),
        np.arange(6)[::2] // 2,
        np.arange(3).astype(object),
        np.ma.array([0, 1, 2]),
        pd.Series([0, 1, 2], index=[5, 6, 7]),
        pd.Series([0, 1, 2], dtype="Int64"),
        pa.array([0, 1, 2]),
        pa.chunked_array([[0], [1, 2]]),
        pl.Series([0, 1, 2]),
    ],
)
def test_one_number_a_row(given):
    label = check_labels(given, 3, None)
    assert label.dtype == np.float32
    assert label.tolist() == [0, 1, 2]
    assert not label.flags.writeable


def test_the_label_is_a_copy():
    y = np.zeros(2, np.float32)
    label = check_labels(y, 2, None)
    y[0] = 1
    assert label[0] == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0, np.nan, 2], "label of row 1 is nan: it must be finite"),
        ([0, 1, -np.inf], "label of row 2 is -inf: it must be finite"),
        ([0, None, 2], "label of row 1 is nan: it must be finite"),
        ([0, 3.5e38, 2], r"label of row 1 is 3.5e\+38: float32 ends at 3.4028235e\+38"),
        ([0, 10**400, 2], "label of row 1 is 1000.*: it must be a finite number"),
        (pd.Series([0, None, 2], dtype="Int64"), "label of row 1 is nan"),
        ([0, pd.NA, 2], "label of row 1 is <NA>: it must be a finite number"),
        (pl.Series([0, None, 2]), "label of row 1 is nan"),
        (pa.array([0, None, 2]), "label of row 1 is nan"),
        (np.ma.array([0, 1, 2], mask=[0, 1, 0]), "label of row 1 is nan"),
        ([0, 1], r"label must have shape \(3,\), one number a row of X, not \(2,\)"),
        (np.zeros((3, 1)), r"not \(3, 1\): ravel\(\) flattens it"),
        (7.0, r"not \(\)"),
        (["a", "b", "c"], "label must be numbers, not <U1"),
        (np.zeros(3, complex), "label must be numbers, not complex128"),
        (np.zeros(3, "M8[s]"), "label must be numbers, not datetime64"),
        (np.array([1, "b", 2], object), "label of row 1 is 'b': it must be a finite number"),
        ([[1], [2, 3], [4]], "label cannot be read as an array"),
    ],
)
def test_a_bad_label_is_named_by_row(given, message):
    with pytest.raises(DataError, match=message):
        check_labels(given, 3, None)


def test_the_largest_float32_is_a_label():
    largest = np.finfo(np.float32).max
    assert check_labels([float(largest), -float(largest)], 2, None).tolist() == [largest, -largest]


def test_labels_of_dropped_rows_are_not_looked_at_and_rows_keep_their_numbers():
    assert check_labels([np.nan, 1, 2], 3, np.array([False, True, True])).tolist() == [1, 2]
    with pytest.raises(DataError, match="label of row 2 is nan"):
        check_labels([np.nan, 1, np.nan], 3, np.array([False, True, True]))


def test_weights_that_all_count():
    weight, keep = check_weights([1, 2.5, TINY], 3)
    assert weight.dtype == np.float32
    assert weight.tolist() == [1, 2.5, TINY]
    assert keep is None


def test_rows_of_weight_zero_leave():
    weight, keep = check_weights([0.0, 2, -0.0, 1], 4)
    assert weight.tolist() == [2, 1]
    assert keep.tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, -2, 1], "weight of row 1 is -2: it must be >= 0"),
        ([1, 1, np.nan], "weight of row 2 is nan: it must be finite"),
        ([np.inf, 1, 1], "weight of row 0 is inf: it must be finite"),
        ([1, 1e-46, 1], "weight of row 1 is 1e-46: float32 makes it 0"),
        ([1, 1e39, 1], r"weight of row 1 is 1e\+39: float32 ends at"),
        ([0, 0, 0], "all 3 weights are 0"),
        ([1, 1], r"weight must have shape \(3,\)"),
    ],
)
def test_a_bad_weight_is_named_by_row(given, message):
    with pytest.raises(DataError, match=message):
        check_weights(given, 3)
