"""Arrays of other libraries as NumPy's, without a copy where that is possible. May import NumPy, device and errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from engine.device.arrays import DeviceArray
from engine.errors import DataError, EngineError

_HOST = (1, 3)
"""DLPack's kDLCPU and kDLCUDAHost."""

_CUDA = (2, 13)
"""kDLCUDA and kDLCUDAManaged."""


def is_array(given: Any) -> bool:
    """Whether it offers itself as an array by one of the protocols that `as_numpy` knows."""
    protocols = ("__array__", "__dlpack__", "__cuda_array_interface__")
    return isinstance(given, list | tuple | DeviceArray) or any(hasattr(given, protocol) for protocol in protocols)


def as_numpy(name: str, given: Any, kind: str = "an array") -> np.ndarray:
    """The array as NumPy's, through ``__array__`` or DLPack; from a GPU, a copy.

    Parameters
    ----------
    name, kind : str
        What it is called and what it should be, for the error.
    given : array-like

    Raises
    ------
    DataError
        If it cannot be read.
    DeviceUnavailableError
        If it lies on a GPU and what it takes to read that is missing.
    """
    there = on_device(name, given, kind)
    with _named(name, kind):
        if there is not None:
            return there.fetch()
        by_dlpack = hasattr(given, "__dlpack__") and not hasattr(given, "__array__")
        return np.from_dlpack(given) if by_dlpack else np.asarray(given)


def on_device(name: str, given: Any, kind: str = "an array") -> DeviceArray | None:
    """The array where it lies, if that is a device's memory; waits once for whatever is still writing it.

    Raises
    ------
    DataError
        If it lies on a device that is neither the host nor CUDA's, or cannot be read.
    DeviceUnavailableError
        If what it takes to read a GPU is missing.
    """
    if isinstance(given, DeviceArray):
        return given
    if not _on_gpu(name, given):
        return None
    from engine.device.cuda import device_array

    with _named(name, kind):
        return device_array(given)


@contextmanager
def _named(name: str, kind: str) -> Iterator[None]:
    """What a foreign library complains of, as an error that says of what."""
    try:
        yield
    except EngineError:
        raise
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise DataError(f"{name} cannot be read as {kind}: {error}") from None


def _on_gpu(name: str, given: Any) -> bool:
    if not hasattr(given, "__dlpack_device__"):
        return hasattr(given, "__cuda_array_interface__")
    device = int(given.__dlpack_device__()[0])
    if device in _HOST or device in _CUDA:
        return device in _CUDA
    what = f"{type(given).__module__.partition('.')[0]}.{type(given).__name__}"
    raise DataError(f"{name} is a {what} on a device that is not CUDA's (DLPack type {device}): pass a host copy")
