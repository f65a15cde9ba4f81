"""A caller's feature columns as a device's kernels are given them, a chunk at a time. May import NumPy and device.

Values keep their own width. A chunk is uploaded as it lies: one piece where the columns are strips of a row-major
matrix, a piece a column otherwise, so the only copy on the host is the one into the device's own staging memory.
Columns that lie in the device's memory already are one chunk, where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import as_strided

from engine.device import Buffer, Device
from engine.device.arrays import RAW_COLUMN, describe_columns

if TYPE_CHECKING:
    from engine.columns import Columns
    from engine.resident_columns import ResidentColumns

CHUNK_BYTES = 64 * 2**20
"""Raw values on the device at a time, at most; two rows are always taken."""

TILE_WIDTH = 16
"""Features that the kernels take together: a chunk begins at a multiple of it."""

_ALIGNMENT = 8


@dataclass(frozen=True)
class Chunk:
    """A rectangle of the data: its rows of its features are on the device."""

    first_feature: int
    n_features: int
    first_row: int
    n_rows: int


def chunk_bytes(n_rows: int, n_features: int, width: int) -> dict[str, int]:
    """What `raw_chunks` needs on the device: bytes by buffer name.

    Parameters
    ----------
    n_rows, n_features : int
    width : {0, 4, 8}
        From `uploaded_width`.
    """
    whole = n_features * _aligned(n_rows * width)
    return {
        "raw values": min(whole, max(CHUNK_BYTES, n_features * 2 * width)),
        "raw columns": n_features * RAW_COLUMN.itemsize,
    }


def uploaded_width(columns: Columns | ResidentColumns, place: str) -> int:
    """Bytes of an uploaded value at the most; 0 where the columns lie in the device's memory."""
    return 0 if columns.place == place else max(columns.widths)


def raw_chunks(
    device: Device,
    columns: Columns | ResidentColumns,
    values: Buffer,
    described: Buffer,
    *,
    whole_rows: bool = False,
) -> Iterator[Chunk]:
    """Give the device chunk after chunk; parameters as for `upload_chunks`."""
    if columns.place == device.place:
        device.upload(described, describe_columns(columns.columns))
        yield Chunk(0, len(columns), 0, columns.n_rows)
    else:
        yield from upload_chunks(device, columns.arrays, values, described, whole_rows=whole_rows)


def widest(arrays: Sequence[np.ndarray]) -> int:
    """Bytes of a value of the widest column."""
    return max(array.itemsize for array in arrays)


def upload_chunks(
    device: Device, arrays: Sequence[np.ndarray], values: Buffer, columns: Buffer, *, whole_rows: bool = False
) -> Iterator[Chunk]:
    """Upload chunk after chunk, each into the same memory; yields once its upload is enqueued.

    Parameters
    ----------
    device : Device
    arrays : sequence of ndarray
        Columns of one length, float32 or float64, of any stride.
    values, columns : Buffer
        Of the sizes of `chunk_bytes`; the second one gets a ``RawColumn`` a feature of the chunk.
    whole_rows : bool
        Whether a chunk must hold every feature.
    """
    n_rows, n_features = len(arrays[0]), len(arrays)
    pieces = as_pieces(arrays)
    chunk_features, chunk_rows = chunk_shape(n_rows, n_features, widest(arrays), whole_rows or len(pieces) == 1)
    for first_feature in range(0, n_features, chunk_features):
        some = pieces if len(pieces) == 1 else pieces[first_feature : first_feature + chunk_features]
        for first_row in range(0, n_rows, chunk_rows):
            described = _upload_rows(device, values, [piece[first_row : first_row + chunk_rows] for piece in some])
            device.upload(columns, described)
            yield Chunk(first_feature, len(described), first_row, min(chunk_rows, n_rows - first_row))


def chunk_shape(n_rows: int, n_features: int, width: int, whole_rows: bool) -> tuple[int, int]:
    """Features and rows of a chunk: long columns where rows may be cut, since each column is an upload of its own."""
    chunk_features = n_features
    if not whole_rows:
        tile_bytes = TILE_WIDTH * _aligned(n_rows * width)
        chunk_features = min(n_features, TILE_WIDTH * max(1, CHUNK_BYTES // tile_bytes))
    fitting = CHUNK_BYTES // (chunk_features * width)
    if fitting >= n_rows and chunk_features * _aligned(n_rows * width) <= CHUNK_BYTES:
        return chunk_features, n_rows
    return chunk_features, max(2, fitting // 2 * 2)  # even, so that columns of float32 stay aligned


def as_pieces(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The columns as two-dimensional views: one, if they lie row-major together, else one each."""
    first = arrays[0]
    start = first.__array_interface__["data"][0]
    together = all(
        array.dtype == first.dtype
        and array.strides == first.strides
        and array.__array_interface__["data"][0] == start + feature * first.itemsize
        for feature, array in enumerate(arrays)
    )
    if not together:
        return [array[:, None] for array in arrays]
    shape, strides = (len(first), len(arrays)), (first.strides[0], first.itemsize)
    return [as_strided(first, shape, strides, writeable=False)]


def _upload_rows(device: Device, values: Buffer, pieces: Sequence[np.ndarray]) -> np.ndarray:
    """Upload the pieces one behind the other; returns the ``RawColumn`` of each of their columns."""
    described, offset = [], 0
    for piece in pieces:
        n_rows, n_columns = piece.shape
        device.upload(values, np.ascontiguousarray(piece), offset)
        for column in range(n_columns):
            address = values.address + offset + column * piece.itemsize
            described.append((address, n_columns * piece.itemsize, piece.itemsize == 8))
        offset += _aligned(n_rows * n_columns * piece.itemsize)
    return np.array(described, RAW_COLUMN)


def _aligned(nbytes: int) -> int:
    return ceil(nbytes / _ALIGNMENT) * _ALIGNMENT
