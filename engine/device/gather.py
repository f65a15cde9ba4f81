"""Columns in a device's memory, seen by the host a chunk at a time. May import arrays, ledger, memory,
kernels, the protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np

from engine.device import Buffer, Device, Launch, open_device
from engine.device.arrays import RAW_COLUMN, DeviceArray, describe_columns
from engine.device.ledger import Ledger
from engine.device.memory import allocate
from engine.kernels.traffic import bytes_per_row

CHUNK_BYTES = 64 * 2**20
"""Values that come down at a time, at most; one column is always taken."""

BLOCK = 256
BLOCKS_PER_PROCESSOR = 8

GATHER_STATE = np.dtype([("columns", np.uint64), ("values", np.uint64), ("n_rows", np.int64), ("n_columns", np.int64)])
"""``GatherState`` of engine/kernels/gather.cuh."""


def read_columns(columns: Sequence[DeviceArray], ledger: Ledger, transaction: str) -> Iterator[list[np.ndarray]]:
    """Copy some columns after the other to the host; nobody keeps what was read before.

    Parameters
    ----------
    columns : sequence of DeviceArray
        Of one length and place, each readable.
    ledger : Ledger
        Books what crosses the bus, under `transaction`.
    """
    chunks = list(_chunks(columns))
    with closing(open_device(columns[0].place)) as device:
        device.ledger = ledger
        with ledger.during(transaction):
            sizes = {
                "gathered values": max(sum(map(_nbytes, chunk)) for chunk in chunks),
                "raw columns": max(map(len, chunks)) * RAW_COLUMN.itemsize,
                "gather state": GATHER_STATE.itemsize,
            }
            buffers = allocate(device, sizes)
            for chunk in chunks:
                yield _read(device, chunk, buffers)


def _chunks(columns: Sequence[DeviceArray]) -> Iterator[list[DeviceArray]]:
    """Neighbours of one type, as many as `CHUNK_BYTES` hold."""
    chunk: list[DeviceArray] = []
    for column in columns:
        is_full = (len(chunk) + 1) * _nbytes(column) > CHUNK_BYTES
        if chunk and (is_full or column.dtype != chunk[0].dtype):
            yield chunk
            chunk = []
        chunk.append(column)
    yield chunk


def _nbytes(column: DeviceArray) -> int:
    return len(column) * column.dtype.itemsize


def _read(device: Device, chunk: list[DeviceArray], buffers: dict[str, Buffer]) -> list[np.ndarray]:
    n_rows = len(chunk[0])
    state = np.zeros(1, GATHER_STATE)
    state["columns"], state["values"] = buffers["raw columns"].address, buffers["gathered values"].address
    state["n_rows"], state["n_columns"] = n_rows, len(chunk)
    device.upload(buffers["raw columns"], describe_columns(chunk))
    device.upload(buffers["gather state"], state)
    grid = min(-(-n_rows * len(chunk) // BLOCK), BLOCKS_PER_PROCESSOR * device.n_processors)
    device.launch(Launch("gather", grid, BLOCK), buffers["gather state"])
    values = device.download(buffers["gathered values"], chunk[0].dtype, (len(chunk), n_rows))
    values.flags.writeable = False
    names = {"columns": len(chunk), "value_bytes": values.itemsize}
    device.ledger.moved({"gather": n_rows * bytes_per_row("gather", names)})
    return list(values)
