"""Margins, responses and leaves of rows under a forest (contract §5, §10).

May import the native module, columns, forest, cores and, where a device is asked for, backends and device.
"""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from engine import _native
from engine.columns import Columns
from engine.cores import worker_threads
from engine.errors import DataError

if TYPE_CHECKING:
    from engine.backends import Plane
    from engine.cuts import Cuts
    from engine.forest import Forest


class Predictor:
    """A forest ready to predict; safe to share among threads.

    Its trees are packed on the first prediction, once.

    Parameters
    ----------
    forest : Forest
    instruction_set : {"", "baseline", "avx2", "avx512"}
        Vector code to run; "" is the best this machine has. Changes time, never a bit.
    """

    def __init__(self, forest: Forest, *, instruction_set: str = "") -> None:
        self.forest = forest
        self._instruction_set = instruction_set
        self._n_used = int(forest.feature.max(initial=-1)) + 1
        self._packed: _native.PackedForest | None = None
        self._lock = threading.Lock()

    def margins(
        self,
        rows: Columns | np.ndarray,
        base_margin: np.float32,
        n_threads: int = 0,
        device: str = "cpu",
        response_of: str = "",
    ) -> np.ndarray:
        """Add the trees' leaf values to the base margin, in float32, tree after tree.

        Parameters
        ----------
        rows : Columns or ndarray of float32 or float64, shape (n_rows, n_features)
            The features the forest was trained on, in that order. An array may have any strides but must be aligned
            and of native byte order (`is_matrix`); it is looked through for infinities.
        base_margin : float32
        n_threads : int
            0 is as many as this process may use. Never changes a bit.
        device : {"cpu", "cuda", "emulated"}
            Where. Never changes a bit.
        response_of : str
            Objective whose response to the margins is wanted instead of them.

        Returns
        -------
        ndarray of float32, of float64 if it is the response, shape (n_rows,)

        Raises
        ------
        DataError
            If a tree splits on a feature that `rows` does not have, or an array holds an infinity.
        ParamError
            If `n_threads` is out of range.
        DeviceUnavailableError
            If the device is not there.
        """
        if device != "cpu":
            columns = rows if not isinstance(rows, np.ndarray) else Columns.of(rows)
            self._check_features(len(columns))
            columns.check()
            margins = _predict_on_device(device, columns, self.forest, base_margin)
            return respond(margins, response_of, n_threads) if response_of else margins
        given = self._native_rows(rows)
        n_threads = self._threads(n_threads, rows)
        found = self._pack().margins(given, float(base_margin), n_threads, self._instruction_set, response_of)
        return found if found is not None else _refuse(rows)

    def leaves(self, rows: Columns | np.ndarray, n_threads: int = 0) -> np.ndarray:
        """Find the leaf that each row ends in, tree by tree; parameters and errors as for `margins`.

        Returns
        -------
        ndarray of int32, shape (n_rows, n_trees)
            Node index within the tree.
        """
        given = self._native_rows(rows)
        found = self._pack().leaves(given, self._threads(n_threads, rows), self._instruction_set)
        return found if found is not None else _refuse(rows)

    def margins_of_bins(
        self, plane: Plane, cuts: Cuts, base_margin: np.float32, n_threads: int = 0, response_of: str = ""
    ) -> np.ndarray | None:
        """Margins from the bins of the native backend's plane.

        Parameters
        ----------
        plane : Plane
        cuts : Cuts
            Those the plane was made with.
        base_margin, n_threads, response_of
            As for `margins`.

        Returns
        -------
        ndarray of float32 or float64, shape (n_rows,), or None
            None where bins do not tell: a threshold is none of the cuts, or a feature has more than 254 of them.
        """
        return self._pack().bin_margins(
            plane,
            cuts.values,
            cuts.offsets,
            float(base_margin),
            worker_threads(n_threads),
            self._instruction_set,
            response_of,
        )

    def leaves_of_bins(self, plane: Plane, cuts: Cuts, n_threads: int = 0) -> np.ndarray | None:
        """Leaves from bins; see `margins_of_bins` and `leaves`."""
        return self._pack().bin_leaves(
            plane, cuts.values, cuts.offsets, worker_threads(n_threads), self._instruction_set
        )

    def _pack(self) -> _native.PackedForest:
        if self._packed is None:
            with self._lock:
                if self._packed is None:
                    self._packed = _native.pack_forest(self.forest)
        return self._packed

    def _threads(self, asked: int, rows: Columns | np.ndarray) -> int:
        n_rows = len(rows) if isinstance(rows, np.ndarray) else rows.n_rows
        if type(asked) is int and asked == 0 and self._pack().useful_threads(n_rows) == 1:
            return 1  # finding out how many there may be takes longer than to predict
        return worker_threads(asked)

    def _native_rows(self, rows: Columns | np.ndarray) -> tuple[np.ndarray, ...] | np.ndarray:
        if isinstance(rows, np.ndarray):
            self._check_features(rows.shape[1])
            return rows
        self._check_features(len(rows))
        return rows.arrays

    def _check_features(self, given: int) -> None:
        if self._n_used > given:
            raise DataError(
                f"X has {given} columns, but the trees need {self._n_used}: give those the model was trained on"
            )


def respond(margins: np.ndarray, objective: str, n_threads: int = 0) -> np.ndarray:
    """The objective's float64 response (contract §5) to float32 margins; the number of threads never changes a bit."""
    return _native.respond(margins, objective, worker_threads(n_threads))


def is_matrix(X: object) -> bool:
    """Whether `Predictor` takes it as it lies: any rows and columns of aligned, native float32 or float64."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.size > 0
        and X.dtype.char in "fd"
        and X.dtype.isnative
        and X.flags.aligned
    )


def _refuse(matrix: np.ndarray) -> np.ndarray:
    """The infinity in it, named as `Columns` does."""
    Columns.of(matrix)
    raise AssertionError("a matrix changed while it was looked through")


def _predict_on_device(device: str, columns: Columns, forest: Forest, base_margin: np.float32) -> np.ndarray:
    from engine.backends import device_predict
    from engine.device import open_device

    with closing(open_device(device)) as opened:
        return device_predict.predict_margins(opened, columns, forest, base_margin)
