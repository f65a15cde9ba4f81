"""Margins of raw rows on a device, bit by bit those of `engine.predictor`. May import device, raw_chunks and NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.backends.device_plane import BLOCK, grid_of
from engine.backends.raw_chunks import chunk_bytes, raw_chunks, uploaded_width
from engine.device import Buffer, Device, Launch
from engine.device.memory import allocate, release

if TYPE_CHECKING:
    from engine.columns import Columns
    from engine.forest import Forest

PREDICT_NODE = np.dtype(
    [
        ("threshold", np.float64),
        ("feature", np.int32),
        ("left", np.int32),
        ("right", np.int32),
        ("missing_left", np.int32),
        ("value", np.float32),
        ("unused", np.uint32),
    ]
)
"""``PredictNode`` of engine/kernels/predict.cuh."""

PREDICT_STATE = np.dtype(
    [
        ("columns", np.uint64),
        ("nodes", np.uint64),
        ("roots", np.uint64),
        ("margins", np.uint64),
        ("n_rows", np.int64),
        ("n_trees", np.int64),
        ("base_margin", np.float32),
        ("unused", np.uint32),
    ]
)
"""``PredictState`` of engine/kernels/predict.cuh."""


def predict_margins(device: Device, columns: Columns, forest: Forest, base_margin: np.float32) -> np.ndarray:
    """Add the trees' leaf values to the base margin, in float32, tree after tree.

    Parameters
    ----------
    device : Device
    columns : Columns
        At least the features that the forest splits on.
    forest : Forest
    base_margin : float32

    Returns
    -------
    ndarray of float32, shape (n_rows,)

    Raises
    ------
    DeviceMemoryError
        With nothing left allocated.
    """
    n_rows, nodes = columns.n_rows, _nodes(forest)
    sizes = {
        **chunk_bytes(n_rows, len(columns), uploaded_width(columns, device.place)),
        "nodes": nodes.nbytes,
        "roots": forest.offsets.nbytes,
        "margins": n_rows * 4,
        "predict state": PREDICT_STATE.itemsize,
    }
    buffers = allocate(device, sizes)
    try:
        device.upload(buffers["nodes"], nodes)
        device.upload(buffers["roots"], forest.offsets)
        state = _state(buffers, len(forest), base_margin)
        for chunk in raw_chunks(device, columns, buffers["raw values"], buffers["raw columns"], whole_rows=True):
            state["margins"] = buffers["margins"].address + 4 * chunk.first_row
            state["n_rows"] = chunk.n_rows
            device.upload(buffers["predict state"], state)
            device.launch(Launch("predict", grid_of(device, chunk.n_rows), BLOCK), buffers["predict state"])
        return device.download(buffers["margins"], np.float32, (n_rows,))
    finally:
        release(device, buffers)


def _nodes(forest: Forest) -> np.ndarray:
    nodes = np.zeros(len(forest.feature), PREDICT_NODE)
    for name in ("threshold", "feature", "left", "right", "missing_left", "value"):
        nodes[name] = getattr(forest, name)
    return nodes


def _state(buffers: dict[str, Buffer], n_trees: int, base_margin: np.float32) -> np.ndarray:
    state = np.zeros(1, PREDICT_STATE)
    state["columns"] = buffers["raw columns"].address
    state["nodes"], state["roots"] = buffers["nodes"].address, buffers["roots"].address
    state["n_trees"], state["base_margin"] = n_trees, base_margin
    return state
