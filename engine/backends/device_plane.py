"""A data set's bins on a device, made there chunk by chunk (contract §3). May import device, cuts, kernels, NumPy."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.backends.raw_chunks import TILE_WIDTH, Chunk, chunk_bytes, raw_chunks, uploaded_width
from engine.device import Buffer, Device, Launch
from engine.device.memory import allocate, release
from engine.kernels.traffic import bytes_per_row

if TYPE_CHECKING:
    from engine.cuts import Cuts
    from engine.dataset import Dataset

BLOCK = 256
BLOCKS_PER_PROCESSOR = 8

INGEST_STATE = np.dtype(
    [
        ("columns", np.uint64),
        ("keys", np.uint64),
        ("offsets", np.uint64),
        ("value_bins", np.uint64),
        ("tiles", np.uint64),
        ("bins", np.uint64),
        ("n_rows", np.int64),
        ("n_cuts", np.int64),
        ("first_row", np.int64),
        ("n_chunk_rows", np.int64),
        ("first_feature", np.int32),
        ("n_chunk_features", np.int32),
    ]
)
"""``IngestState`` of engine/kernels/binning.cuh."""


@dataclass(frozen=True, eq=False)
class DevicePlane:
    """Bins as the device kernels read them (docs/device.md §3). Closes its device when it is no longer used.

    Attributes
    ----------
    device : Device
        The one it was made on; the plane's own.
    n_rows, n_features : int
    value_bins : ndarray of int32, shape (n_features,)
        Also the number of each feature's missing bin.
    wide : bool
        Whether bins are uint16, else uint8.
    tiles : Buffer
        Bin of row r and feature f at ``(f // tile_width * n_rows + r) * tile_width + f % tile_width``.
    columns : Buffer
        The same at ``f * n_rows + r``.
    tile_width : int
    """

    device: Device
    n_rows: int
    n_features: int
    value_bins: np.ndarray
    wide: bool
    tiles: Buffer
    columns: Buffer
    tile_width: int = TILE_WIDTH

    def __post_init__(self) -> None:
        weakref.finalize(self, self.device.close)

    @classmethod
    def ingest(cls, device: Device, dataset: Dataset) -> DevicePlane:
        """Bin a data set with its own cuts; ends in one synchronisation.

        Parameters
        ----------
        device : Device
            Becomes the plane's own; still the caller's if this raises.
        dataset : Dataset

        Raises
        ------
        DeviceMemoryError
            With nothing left allocated.
        """
        n_rows, n_features, cuts = dataset.n_rows, dataset.n_features, dataset.cuts
        held = allocate(device, plane_bytes(n_rows, n_features, cuts.wide))
        try:
            _bin(device, dataset, held)
        except BaseException:
            release(device, held)
            raise
        device.rest()
        return cls(device, n_rows, n_features, cuts.value_bins, cuts.wide, held["tiles"], held["columns"])

    def bins(self) -> np.ndarray:
        """The bins on the host, shape (n_rows, n_features), from the column-major copy; one synchronisation."""
        shape = (self.n_features, self.n_rows)
        return self.device.download(self.columns, np.uint16 if self.wide else np.uint8, shape).T


def plane_bytes(n_rows: int, n_features: int, wide: bool) -> dict[str, int]:
    """What a plane keeps on the device: bytes by buffer name."""
    width = 2 if wide else 1
    n_tiles = -(-n_features // TILE_WIDTH)
    return {"tiles": n_tiles * TILE_WIDTH * n_rows * width, "columns": n_features * n_rows * width}


def ingest_bytes(n_rows: int, n_features: int, n_cuts: int, width: int) -> dict[str, int]:
    """What making a plane takes besides, for as long as that lasts: bytes by buffer name.

    Parameters
    ----------
    n_rows, n_features, n_cuts : int
    width : {0, 4, 8}
        Bytes of a value of the widest column that must be uploaded.
    """
    return {
        **chunk_bytes(n_rows, n_features, width),
        "cuts": n_cuts * 8,
        "cut offsets": (n_features + 1) * 8,
        "value bins": n_features * 4,
        "ingest state": INGEST_STATE.itemsize,
    }


def grid_of(device: Device, n_threads: int) -> int:
    """Enough blocks for so many threads, or to fill the device, whichever is less."""
    return max(1, min(-(-n_threads // BLOCK), BLOCKS_PER_PROCESSOR * device.n_processors))


def _bin(device: Device, dataset: Dataset, held: dict[str, Buffer]) -> None:
    columns, cuts = dataset.columns, dataset.cuts
    width = uploaded_width(columns, device.place)
    needed = ingest_bytes(dataset.n_rows, dataset.n_features, len(cuts.values), width)
    scratch = allocate(device, needed)
    try:
        state = _state(dataset.n_rows, cuts, held, scratch)
        device.upload(scratch["ingest state"], state)
        for name, array in (("cuts", cuts.values), ("cut offsets", cuts.offsets), ("value bins", cuts.value_bins)):
            device.upload(scratch[name], array)
        device.launch(Launch("key_cuts", grid_of(device, len(cuts.values)), BLOCK), scratch["ingest state"])
        for chunk in raw_chunks(device, columns, scratch["raw values"], scratch["raw columns"]):
            _bin_chunk(device, chunk, state, scratch["ingest state"], cuts.wide)
        device.synchronise()
        device.ledger.moved(_traffic(dataset))
    finally:
        release(device, scratch)


def _traffic(dataset: Dataset) -> dict[str, int]:
    """Bytes by kernel that binning reads and writes, all chunks together."""
    n_features, widths = dataset.n_features, dataset.columns.widths
    names = {
        "features": n_features,
        "tiles": -(-n_features // TILE_WIDTH),
        "value_bytes": sum(widths) / n_features,
        "bin_bytes": 2 if dataset.cuts.wide else 1,
    }
    kernel = _bin_kernel(dataset.cuts.wide)
    return {kernel: dataset.n_rows * round(bytes_per_row(kernel, names))}


def _bin_kernel(wide: bool) -> str:
    return "bin_u16" if wide else "bin_u8"


def _state(n_rows: int, cuts: Cuts, held: dict[str, Buffer], scratch: dict[str, Buffer]) -> np.ndarray:
    state = np.zeros(1, INGEST_STATE)
    state["columns"] = scratch["raw columns"].address
    state["keys"] = scratch["cuts"].address
    state["offsets"] = scratch["cut offsets"].address
    state["value_bins"] = scratch["value bins"].address
    state["tiles"], state["bins"] = held["tiles"].address, held["columns"].address
    state["n_rows"], state["n_cuts"] = n_rows, len(cuts.values)
    return state


def _bin_chunk(device: Device, chunk: Chunk, state: np.ndarray, buffer: Buffer, wide: bool) -> None:
    state["first_row"], state["n_chunk_rows"] = chunk.first_row, chunk.n_rows
    state["first_feature"], state["n_chunk_features"] = chunk.first_feature, chunk.n_features
    device.upload(buffer, state)
    n_threads = -(-chunk.n_features // TILE_WIDTH) * -(-chunk.n_rows // BLOCK) * BLOCK
    device.launch(Launch(_bin_kernel(wide), grid_of(device, n_threads), BLOCK), buffer)
