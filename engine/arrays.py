"""Arrays of other libraries as NumPy's, without a copy where that is possible. May import NumPy and errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.errors import DataError

_HOST = (1, 3)
"""DLPack's kDLCPU and kDLCUDAHost."""


def is_array(given: Any) -> bool:
    """Whether it offers itself as an array by one of the protocols that `as_numpy` knows."""
    protocols = ("__array__", "__dlpack__", "__cuda_array_interface__")
    return isinstance(given, list | tuple) or any(hasattr(given, protocol) for protocol in protocols)


def as_numpy(name: str, given: Any, kind: str = "an array") -> np.ndarray:
    """The array as NumPy's, through ``__array__`` or DLPack.

    Parameters
    ----------
    name, kind : str
        What it is called and what it should be, for the error.
    given : array-like

    Raises
    ------
    DataError
        If it lies on a GPU or cannot be read.
    """
    if _on_gpu(given):
        what = f"{type(given).__module__.partition('.')[0]}.{type(given).__name__}"
        raise DataError(
            f"{name} is a {what} in the memory of a GPU, but cuts and labels are read on the host: "
            "pass a host copy, such as .get() of CuPy or .cpu() of PyTorch"
        )
    try:
        by_dlpack = hasattr(given, "__dlpack__") and not hasattr(given, "__array__")
        return np.from_dlpack(given) if by_dlpack else np.asarray(given)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise DataError(f"{name} cannot be read as {kind}: {error}") from None


def _on_gpu(given: Any) -> bool:
    if hasattr(given, "__dlpack_device__"):
        return given.__dlpack_device__()[0] not in _HOST
    return hasattr(given, "__cuda_array_interface__")
