"""Data sets: what they hold, what they refuse, and that they are made once and shared."""

import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import _native
from engine.backends.reference import MISSING
from engine.dataset import Dataset
from engine.errors import DataError, DeviceUnavailableError, ParamError


def random_table(n_rows=200, n_features=3, seed=0):
    random = np.random.default_rng(seed)
    return random.standard_normal((n_rows, n_features)), random.standard_normal(n_rows)


def test_what_it_holds():
    X, y = random_table()
    data = Dataset(X, y, weight=np.ones(200), feature_names=["a", "b", "c"], max_bin=16)
    assert (data.n_rows, data.n_features, data.max_bin) == (200, 3, 16)
    assert data.feature_names == ("a", "b", "c")
    assert data.label.dtype == data.weight.dtype == np.float32
    assert data.owns_cuts
    assert data.cuts.value_bins.tolist() == [16, 16, 16]
    assert np.shares_memory(data.columns.arrays[0], X)
    assert "200 x 3" in repr(data)


def test_labels_and_weights_are_optional():
    data = Dataset(random_table()[0])
    assert data.label is None
    assert data.weight is None


@pytest.mark.parametrize("name", ["label", "weight"])
def test_arrays_are_read_only(name):
    X, y = random_table()
    with pytest.raises(ValueError, match="read-only"):
        getattr(Dataset(X, y, weight=y * y), name)[0] = 1


@given(zeros=st.lists(st.booleans(), min_size=30, max_size=30).filter(lambda zeros: not all(zeros)))
def test_rows_of_weight_zero_influence_nothing(zeros):
    X, y = random_table(30)
    weight = np.where(zeros, 0, np.linspace(0.5, 2, 30))
    keep = weight > 0
    poisoned, poisoned_y = X.copy(), y.copy()
    poisoned[~keep], poisoned_y[~keep] = np.inf, np.nan
    data = Dataset(poisoned, poisoned_y, weight=weight, max_bin=7)
    without = Dataset(X[keep], y[keep], weight=weight[keep], max_bin=7)
    assert data.cuts == without.cuts
    assert data.n_rows == without.n_rows == keep.sum()
    for name in ("label", "weight"):
        np.testing.assert_array_equal(getattr(data, name), getattr(without, name))
    for ours, theirs in zip(data.columns.arrays, without.columns.arrays, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_rows_keep_their_numbers_in_errors():
    X, y = random_table(5)
    weight = [0, 1, 0, 1, 1]
    X[3, 1] = np.inf
    with pytest.raises(DataError, match="column 'f1', row 3 is inf"):
        Dataset(X, y, weight=weight)
    y[4] = np.nan
    with pytest.raises(DataError, match="label of row 4 is nan"):
        Dataset(random_table(5)[0], y, weight=weight)


def test_cuts_from_another():
    X, y = random_table()
    data = Dataset(X, y, max_bin=10)
    other = Dataset(X[:20] * 100, y[:20], cuts_from=data)
    assert other.cuts is data.cuts
    assert other.max_bin == 10
    assert not other.owns_cuts


def test_the_oracle_and_the_native_plane_hold_the_same_bins():
    X, y = random_table(1000, 6)
    X[::7, 2] = np.nan
    X[:, 3] = np.round(X[:, 3])
    X[:, 4] = np.nan
    data = Dataset(X, y, weight=np.abs(y) + 0.01, max_bin=50)
    evaluated = Dataset(X[::-3] * 2, cuts_from=data)
    for each in (data, evaluated):
        oracle, native = each.plane("reference"), each.plane("cpu")
        expected = np.where(oracle.bins == MISSING, each.cuts.value_bins[:, None], oracle.bins)
        np.testing.assert_array_equal(_native.row_bins(native).T, expected)
        np.testing.assert_array_equal(_native.column_bins(native).T, expected)
        for feature, cuts in enumerate(oracle.cuts):
            np.testing.assert_array_equal(each.cuts.of(feature), cuts)


def test_a_plane_is_made_once_however_many_threads_ask():
    data = Dataset(*random_table(5000, 10))
    with ThreadPoolExecutor(8) as pool:
        planes = list(pool.map(data.plane, ["reference"] * 16))
    assert all(plane is planes[0] for plane in planes)
    assert data.ingest("reference") is data
    assert data.plane("reference") is planes[0]


def test_an_unknown_device_is_refused_and_the_data_set_lives_on():
    data = Dataset(*random_table())
    with pytest.raises(DeviceUnavailableError):
        data.plane("abacus")
    assert data.plane("reference").n_rows == 200


@pytest.mark.parametrize("max_bin", [1, 65536, 0, -5, 2.5, "8", None, True, float("nan")])
def test_max_bin_out_of_range(max_bin):
    with pytest.raises(ParamError, match=r"max_bin=.* must be an integer in \[2, 65535\]"):
        Dataset(random_table()[0], max_bin=max_bin)


@pytest.mark.parametrize("max_bin", [2, 65535, np.int64(9)])
def test_max_bin_in_range(max_bin):
    assert Dataset(random_table()[0], max_bin=max_bin).max_bin == max_bin


def test_other_columns_than_those_of_cuts_from_are_refused():
    frame = pd.DataFrame(random_table()[0], columns=["a", "b", "c"])
    data = Dataset(frame)
    with pytest.raises(DataError, match="X has 2 columns, but the data of cuts_from has 3"):
        Dataset(frame[["a", "b"]], cuts_from=data)
    with pytest.raises(DataError, match="column 1 is 'c', but in the data of cuts_from it is 'b'"):
        Dataset(frame[["a", "c", "b"]], cuts_from=data)
    with pytest.raises(DataError, match=r"cuts_from must be an engine.Dataset, got Cuts"):
        Dataset(frame, cuts_from=data.cuts)


def test_a_table_without_names_takes_those_of_cuts_from():
    frame = pd.DataFrame(random_table()[0], columns=["a", "b", "c"])
    assert Dataset(frame.to_numpy(), cuts_from=Dataset(frame)).feature_names == ("a", "b", "c")
    unnamed = Dataset(frame, cuts_from=Dataset(frame.to_numpy()))
    assert unnamed.feature_names == ("f0", "f1", "f2")


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (7, 1)])
@pytest.mark.parametrize("fill", [0.0, np.nan, 1e-310, 1e308])
def test_degenerate_tables(shape, fill):
    data = Dataset(np.full(shape, fill), np.zeros(shape[0]))
    assert data.cuts.values.size == 0
    assert data.cuts.value_bins.tolist() == [0 if np.isnan(fill) else 1] * shape[1]
    assert not _native.row_bins(data.plane("cpu")).any()


def test_a_large_float_matrix_is_not_copied():
    X = np.zeros((20_000, 50), np.float32)
    tracemalloc.start()
    try:
        data = Dataset(X, feature_names=[f"c{i}" for i in range(50)])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert data.n_rows == 20_000
    assert peak < X.nbytes / 10


def test_ingest_takes_bins_and_a_bounded_sample_never_a_copy_of_the_table():
    """In a process of its own: the peak is the system's, of a whole process."""
    code = """
import os
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])  # a worker has a sample
import numpy as np
from engine import Dataset
from ladders.memory import PeakMemory

random = np.random.default_rng(0)
Dataset(random.random((1000, 3))).ingest("cpu")
for dtype in (np.float32, np.float64):
    for order in "CF":
        X = np.array(random.random((1_000_000, 16), dtype), order=order)
        memory = PeakMemory()
        with memory:
            Dataset(X).ingest("cpu")
        sample = 2**18 * (16 * X.itemsize + 2 * X.itemsize + X.itemsize + 8)
        print(memory.over_resident_bytes, max(2 * X.size, sample), X.nbytes)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    figures = [[int(figure) for figure in line.split()] for line in done.stdout.splitlines()]
    assert len(figures) == 4
    for peak, needed, table in figures:
        assert 0.5 * needed < peak < needed + 2**23 < table
