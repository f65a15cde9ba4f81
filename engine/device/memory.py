"""Device memory taken all or nothing, and what to do when there is too little. May import errors and the protocol.

What a fit needs is arithmetic (`engine.memory`); here the same numbers meet a device.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.device import Buffer, Device
from engine.errors import DeviceMemoryError

REMEDIES = {
    "tiles": "max_bin <= 255 keeps bins in one byte; else train on fewer rows or features",
    "columns": "max_bin <= 255 keeps bins in one byte; else train on fewer rows or features",
    "cells": "lower max_leaves, max_depth or max_bin",
    "feature_splits": "lower max_leaves or max_depth",
    "nodes": "lower max_leaves or max_depth",
    "trees": "lower n_estimators, max_leaves or max_depth",
    "raw values": "end other programs that hold this device's memory",
}
"""What shrinks a buffer; all others grow with the rows alone."""

_SHOWN = 4


def allocate(device: Device, sizes: Mapping[str, int]) -> dict[str, Buffer]:
    """Every buffer of `sizes`, or none.

    Parameters
    ----------
    device : Device
    sizes : mapping of str to int
        Bytes by buffer name.

    Raises
    ------
    DeviceMemoryError
        Says what was refused and why, what all of it needs, and which knob lowers the largest part.
    """
    buffers: dict[str, Buffer] = {}
    try:
        for what, nbytes in sizes.items():
            buffers[what] = device.alloc(nbytes, what)
    except BaseException as error:
        release(device, buffers)
        if isinstance(error, DeviceMemoryError):
            raise DeviceMemoryError(f"{error}; {explain(sizes)}") from error
        raise
    return buffers


def release(device: Device, buffers: dict[str, Buffer]) -> None:
    """Give every buffer back and forget it."""
    while buffers:
        device.free(buffers.popitem()[1])


def explain(sizes: Mapping[str, int]) -> str:
    """What a plan needs in all, its largest buffers, and the knob that lowers the largest."""
    by_size = sorted(sizes.items(), key=lambda item: -item[1])
    largest = ", ".join(f"{what} {readable(nbytes)}" for what, nbytes in by_size[:_SHOWN])
    remedy = REMEDIES.get(by_size[0][0], "train on fewer rows")
    return f"all of it needs {readable(sum(sizes.values()))} ({largest}): {remedy}"


def readable(nbytes: int) -> str:
    """Bytes as a person reads them."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= size:
            return f"{nbytes / size:.1f} {unit}"
    return f"{nbytes} B"
