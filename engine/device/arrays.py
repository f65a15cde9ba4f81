"""Arrays that lie in a device's memory: where and how, without touching them. May import NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

RAW_COLUMN = np.dtype([("address", np.uint64), ("stride", np.int32), ("is_double", np.uint32)])
"""``RawColumn`` of engine/kernels/raw.cuh."""

_LARGEST_STRIDE = 2**31 - 1


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """A caller's array; keeps its memory alive.

    Attributes
    ----------
    place : str
        Whose memory: that of the device with the same `engine.device.Device.place`.
    address : int
        Of the first element.
    dtype : numpy.dtype
    shape, strides : tuple of int
        Strides in bytes, of any sign.
    fetch : callable
        Makes a copy on the host; what keeps the memory alive hangs on it.
    """

    place: str
    address: int
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    fetch: Callable[[], np.ndarray]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def is_readable(self) -> bool:
        """Whether kernels read its values as they lie: float32 or float64, aligned."""
        size = self.dtype.itemsize
        return (
            self.dtype in (np.float32, np.float64)
            and all(offset % size == 0 for offset in (self.address, *self.strides))
            and all(abs(stride) <= _LARGEST_STRIDE for stride in self.strides)
        )

    def __len__(self) -> int:
        return self.shape[0]

    def column(self, feature: int) -> DeviceArray:
        """One column of a matrix."""
        return replace(
            self,
            address=self.address + feature * self.strides[1],
            shape=self.shape[:1],
            strides=self.strides[:1],
            fetch=lambda: self.fetch()[:, feature],
        )


def describe_columns(columns: list[DeviceArray] | tuple[DeviceArray, ...]) -> np.ndarray:
    """What kernels must know of columns, one ``RawColumn`` each."""
    return np.array([(one.address, one.strides[0], one.dtype.itemsize == 8) for one in columns], RAW_COLUMN)
