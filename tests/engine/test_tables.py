"""Tables of every library come apart into the same columns, or are refused by name."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from engine.columns import Columns
from engine.errors import DataError

NAN = float("nan")


def assert_columns(columns, expected, names):
    assert columns.names == tuple(names)
    assert len(columns) == len(expected)
    for array, values in zip(columns.arrays, expected, strict=True):
        assert array.dtype in (np.float32, np.float64)
        np.testing.assert_array_equal(array, values)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", ">f4", ">i4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numpy_of_every_numeric_dtype(dtype, order):
    X = np.array([[0, 1], [1, 0], [1, 1]], dtype=dtype, order=order)
    assert_columns(Columns.of(X), [[0, 1, 1], [1, 0, 1]], ["f0", "f1"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_floating_point_input_is_viewed(dtype, order):
    X = np.zeros((4, 3), dtype=dtype, order=order)
    for feature, array in enumerate(Columns.of(X).arrays):
        assert np.shares_memory(array, X[:, feature])
        assert array.dtype == dtype


@pytest.mark.parametrize(
    "view", [lambda X: X[::2, ::3], lambda X: X[::-1, ::-1], lambda X: X.T, lambda X: X[1:2], lambda X: X[:, 1:2]]
)
def test_strided_views(view):
    X = view(np.arange(36, dtype=np.float32).reshape(6, 6))
    assert_columns(Columns.of(X), X.T, [f"f{i}" for i in range(X.shape[1])])


def test_misaligned_and_read_only_arrays():
    raw = np.zeros(4 * 8 + 1, np.uint8)
    X = raw[1:].view(np.float32).reshape(4, 2)
    X[:] = 7
    X.flags.writeable = False
    assert not X.flags.aligned
    columns = Columns.of(X)
    assert_columns(columns, [[7] * 4] * 2, ["f0", "f1"])
    assert all(array.flags.aligned for array in columns.arrays)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, bool])
def test_masked_values_are_missing(dtype):
    X = np.ma.array(np.array([[1, 1], [0, 1]], dtype=dtype), mask=[[False, True], [False, False]])
    assert_columns(Columns.of(X), [[1, 0], [NAN, 1]], ["f0", "f1"])
    assert X.data[0, 1] == 1


def test_a_masked_value_may_be_what_is_refused_elsewhere():
    X = np.ma.array([[np.inf], [1.0]], mask=[[True], [False]])
    assert_columns(Columns.of(X), [[NAN, 1]], ["f0"])


def test_rows_as_lists():
    assert_columns(Columns.of([[1, 2.5], [3, NAN]]), [[1, 3], [2.5, NAN]], ["f0", "f1"])


def pandas_table():
    return pd.DataFrame(
        {
            "float": np.array([1.5, NAN, 3.0]),
            "single": np.array([1.5, NAN, 3.0], np.float32),
            "integer": [1, 2, 3],
            "small": np.array([1, 2, 3], np.int8),
            "boolean": [True, False, True],
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "nullable_float": pd.array([1.5, None, 3.0], dtype="Float32"),
            "nullable_boolean": pd.array([True, None, False], dtype="boolean"),
            "arrow": pd.array([1.5, None, 3.0], dtype="double[pyarrow]"),
            "arrow_integer": pd.array([1, None, 3], dtype="uint16[pyarrow]"),
        }
    )


EXPECTED = [
    [1.5, NAN, 3],
    [1.5, NAN, 3],
    [1, 2, 3],
    [1, 2, 3],
    [1, 0, 1],
    [1, NAN, 3],
    [1.5, NAN, 3],
    [1, NAN, 0],
    [1.5, NAN, 3],
    [1, NAN, 3],
]


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame,
        pa.Table.from_pandas,
        lambda frame: pa.RecordBatch.from_pandas(frame),
        lambda frame: pa.concat_tables([pa.Table.from_pandas(frame[:1]), pa.Table.from_pandas(frame[1:])]),
        pl.from_pandas,
        lambda frame: pl.concat([pl.from_pandas(frame[:2]), pl.from_pandas(frame[2:])], rechunk=False),
    ],
    ids=["pandas", "arrow", "batch", "chunked", "polars", "polars-chunked"],
)
def test_tables_with_names_and_nulls(convert):
    frame = pandas_table()
    columns = Columns.of(convert(frame))
    assert columns.named
    assert_columns(columns, EXPECTED, frame.columns)


def test_an_all_null_column_is_all_missing():
    assert_columns(Columns.of(pa.table({"a": pa.nulls(2), "b": [1, 2]})), [[NAN, NAN], [1, 2]], ["a", "b"])


def test_large_nullable_integers_stay_exact():
    frame = pd.DataFrame({"id": pd.array([2**53 - 1, None, 2**53], dtype="Int64")})
    for table in (frame, pa.Table.from_pandas(frame), pl.from_pandas(frame)):
        assert Columns.of(table).arrays[0][[0, 2]].tolist() == [2**53 - 1, 2**53]


def test_unnamed_pandas_columns_get_default_names():
    columns = Columns.of(pd.DataFrame(np.zeros((2, 3))))
    assert columns.names == ("f0", "f1", "f2")
    assert not columns.named


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(3), r"two dimensions.*\(3,\).*reshape\(-1, 1\)"),
        (np.zeros((2, 2, 2)), r"two dimensions.*\(2, 2, 2\)"),
        (np.float64(3), "two dimensions"),
        (np.zeros((0, 3)), "0 rows"),
        (np.zeros((3, 0)), "0 columns"),
        (pd.DataFrame({"a": []}), "0 rows"),
        (pl.DataFrame(), "0 columns"),
        (pa.table({"a": pa.array([], pa.float32())}), "0 rows"),
        ([], "two dimensions"),
        ([[1, 2], [3]], "cannot be read as a NumPy array"),
        ({"a": [1]}, "must be a NumPy array or a pandas"),
        (None, "must be a NumPy array or a pandas"),
        ("text", "must be a NumPy array or a pandas"),
        (pl.DataFrame({"a": [1.0]}).lazy(), r"LazyFrame: collect\(\)"),
        (pl.Series([1.0]), "single Series"),
        (pa.array([1.0]), "single"),
        (pd.Series([1.0]), r"to_frame\(\)"),
        (scipy.sparse.eye(3).tocsr(), r"sparse.*toarray\(\)"),
        (np.zeros((2, 2), np.longdouble), r"'f0' is float128, wider.*astype\(numpy.float64\)"),
        (np.zeros((2, 2), complex), "'f0' is complex: pass the real"),
        (np.zeros((2, 2), "M8[s]"), "'f0' holds dates"),
        (np.zeros((2, 2), "m8[s]"), "'f0' holds durations"),
        (np.array([["a", "b"]]), "'f0' holds strings: encode it as numbers"),
        (np.array([[1, None]], object), "'f0' holds Python objects: encode"),
        (np.array([[b"a"]]), "'f0' holds bytes"),
        (np.zeros((2, 2), "f4,f4"), "'f0' is a structured type"),
        (np.array([["a"]], np.dtypes.StringDType()), "'f0' holds strings"),
        (pd.DataFrame({"n": [1], "town": ["Bath"]}), "'town' .*string.*encode it as numbers"),
        (pd.DataFrame({"town": pd.Categorical(["Bath"])}), "'town' holds categories: encode it as numbers"),
        (pd.DataFrame({"when": pd.to_datetime(["2018-01-30"])}), "'when' holds dates"),
        (pd.DataFrame({"when": pd.to_datetime(["2018-01-30"]).tz_localize("UTC")}), "'when' is of type timestamp"),
        (pd.DataFrame({"span": pd.period_range("2018", periods=1)}), "'span' is .*period"),
        (pd.DataFrame({"s": pd.arrays.SparseArray([0.0, 1.0])}), r"'s' is sparse.*to_dense\(\)"),
        (pl.DataFrame({"town": ["Bath"]}), "'town' is of type .*string"),
        (pl.DataFrame({"town": pl.Series(["Bath"], dtype=pl.Categorical)}), "'town' holds categories"),
        (pa.table({"price": pa.array([Decimal("1.5")])}), "'price' is of type decimal"),
        (pa.table({"list": [[1.0]]}), "'list' is of type list"),
        (np.broadcast_to(np.float32(0), (2**31, 1)), "2147483648 rows, more than 2147483647"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused_by_name(X, message):
    with pytest.raises(DataError, match=message):
        Columns.of(X)
