"""A task's training part as a CSV file, for ladders that time the reading too. May import NumPy and pyarrow."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

CHUNK = 65_536


def write_csv(X: np.ndarray, y: np.ndarray, path: Path) -> None:
    """Label first, then the features, no header, as YearPredictionMSD is; each value so that float32 gets it back.

    The file appears under its name only when it is complete and on the disk.

    Raises
    ------
    OSError
        If it cannot be written, a full disk included.
    """
    names = [str(index) for index in range(X.shape[1] + 1)]
    schema = pa.schema([(name, pa.float32()) for name in names])
    draft = path.with_suffix(f".{os.getpid()}.draft")
    try:
        with draft.open("wb") as file:
            with csv.CSVWriter(file, schema, write_options=csv.WriteOptions(include_header=False)) as writer:
                for start in range(0, len(X), CHUNK):
                    rows = slice(start, start + CHUNK)
                    columns = [y[rows], *np.ascontiguousarray(X[rows].T)]
                    writer.write_batch(pa.record_batch(columns, schema=schema))
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)


def read_csv(path: Path, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    """What `write_csv` wrote: features in C order and labels, float32; the same reader for every contender.

    Parameters
    ----------
    path : Path
    n_threads : int
        Arrow's pool is set to it for this process.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read, or is no rectangle of numbers (pyarrow's errors are of these).
    """
    pa.set_cpu_count(n_threads)
    return to_arrays(csv.read_csv(path, read_options=_HEADERLESS, convert_options=_float32(path)))


def to_arrays(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """(X, y) of a table whose first column is the label; X in C order, both float32, empty fields NaN."""
    X = np.empty((table.num_rows, table.num_columns - 1), np.float32)
    for index, column in enumerate(table.columns[1:]):
        X[:, index] = column.to_numpy()
    return X, np.array(table.column(0).to_numpy(), np.float32)


_HEADERLESS = csv.ReadOptions(autogenerate_column_names=True)


def _float32(path: Path) -> csv.ConvertOptions:
    """Every column as float32: Arrow would otherwise guess integers and doubles from the first block."""
    with path.open() as file:
        n_columns = file.readline().count(",") + 1
    return csv.ConvertOptions(column_types={f"f{index}": pa.float32() for index in range(n_columns)})
