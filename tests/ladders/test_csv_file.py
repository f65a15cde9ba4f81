import errno
import os
import resource

import numpy as np
import pytest

from ladders.data.csv_file import read_csv, write_csv


@pytest.fixture
def rows(rng):
    """Float32 of every size, gaps, signs of zero, denormals; more than one chunk of them."""
    X = (rng.normal(size=(70_000, 5)) * 10.0 ** rng.integers(-37, 38, size=(70_000, 5))).astype(np.float32)
    X[::7, 3] = np.nan
    X[0, 0], X[1, 0], X[2, 0], X[3, 0] = -0.0, np.float32(1e-45), np.finfo(np.float32).max, np.inf
    return X, rng.normal(size=len(X)).astype(np.float32)


def test_every_bit_comes_back(rows, tmp_path):
    X, y = rows
    write_csv(X, y, tmp_path / "rows.csv")
    found, label = read_csv(tmp_path / "rows.csv", 2)
    assert found.dtype == label.dtype == np.float32
    assert found.flags.c_contiguous
    present = ~np.isnan(X)
    assert np.array_equal(found.view(np.uint32)[present], X.view(np.uint32)[present])
    assert np.array_equal(np.isnan(found), ~present)
    assert np.array_equal(label, y)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1)])
def test_one_row_and_one_column(shape, tmp_path):
    write_csv(np.ones(shape, np.float32), np.zeros(shape[0], np.float32), tmp_path / "rows.csv")
    X, y = read_csv(tmp_path / "rows.csv", 1)
    assert X.shape == shape
    assert np.array_equal(y, np.zeros(shape[0]))


@pytest.mark.parametrize("text", ["1,2\n3\n", "1,a\n", ""])
def test_what_is_no_table_of_numbers(text, tmp_path):
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(ValueError, match=r"columns|conversion|Empty"):
        read_csv(tmp_path / "rows.csv", 1)


def test_a_disk_that_fills_up_leaves_no_file(rows, tmp_path):
    """The kernel refuses to let a file grow past a limit, as it refuses on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OSError) as caught:  # noqa: PT011
            write_csv(*rows, tmp_path / "rows.csv")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG
    assert os.listdir(tmp_path) == []
