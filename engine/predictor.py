"""Margins and leaves of rows under a forest (contract §10). May import the native module, columns, forest, cores and,
where a device is asked for, backends and device.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from engine import _native
from engine.cores import worker_threads
from engine.errors import DataError

if TYPE_CHECKING:
    from engine.columns import Columns
    from engine.forest import Forest


def predict_margins(
    columns: Columns, forest: Forest, base_margin: np.float32, n_threads: int = 0, device: str = "cpu"
) -> np.ndarray:
    """Add the trees' leaf values to the base margin, in float32, tree after tree.

    Parameters
    ----------
    columns : Columns
        The features the forest was trained on, in that order.
    forest : Forest
    base_margin : float32
    n_threads : int
        0 is as many as this process may use. Never changes a bit.
    device : {"cpu", "cuda", "emulated"}
        Where. Never changes a bit.

    Returns
    -------
    ndarray of float32, shape (n_rows,)

    Raises
    ------
    DataError
        If a tree splits on a feature that `columns` does not have.
    ParamError
        If `n_threads` is out of range.
    DeviceUnavailableError
        If the device is not there.
    """
    _check_features(columns, forest)
    if device != "cpu":
        columns.check()
        return _predict_on_device(device, columns, forest, base_margin)
    return _native.predict_margins(columns.arrays, forest, float(base_margin), worker_threads(n_threads))


def predict_leaf(columns: Columns, forest: Forest, n_threads: int = 0) -> np.ndarray:
    """Find the leaf that each row ends in, tree by tree; parameters and errors as for `predict_margins`.

    Returns
    -------
    ndarray of int32, shape (n_rows, n_trees)
        Node index within the tree.
    """
    _check_features(columns, forest)
    return _native.predict_leaves(columns.arrays, forest, worker_threads(n_threads))


def _predict_on_device(device: str, columns: Columns, forest: Forest, base_margin: np.float32) -> np.ndarray:
    from engine.backends import device_predict
    from engine.device import open_device

    with closing(open_device(device)) as opened:
        return device_predict.predict_margins(opened, columns, forest, base_margin)


def _check_features(columns: Columns, forest: Forest) -> None:
    used = int(forest.feature.max(initial=-1)) + 1
    if used > len(columns):
        raise DataError(f"X has {len(columns)} columns, but the trees need {used}: give those the model was trained on")
