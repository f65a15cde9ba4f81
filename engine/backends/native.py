"""The C++ backend on the CPU, one native call a tree's rounds. May import cores, errors, params, tree and _native."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from engine import _native
from engine.backends import Choice
from engine.cores import spinning_threads, worker_threads
from engine.errors import SessionError
from engine.params import Params
from engine.tree import JoinedTrees

if TYPE_CHECKING:
    from engine.dataset import Dataset

HISTOGRAM_BYTES = 2**30
"""Most memory that kept histograms take; what does not fit is built again when it is wanted."""

SHARED_PARAMS = (
    "objective",
    "learning_rate",
    "n_estimators",
    "max_depth",
    "max_leaves",
    "min_samples_leaf",
    "min_child_weight",
    "reg_lambda",
    "reg_alpha",
    "gamma",
)
"""Parameters that the native side takes by the same name."""


class NativeBackend:
    """`engine.backends.Backend` in C++.

    Parameters
    ----------
    n_threads : int
        Worker threads, the caller's included; 0 is as many as this process may use.
    histogram_bytes : int
        Budget of kept histograms. Changes time, never a bit.
    instruction_set : {"", "baseline", "avx2", "avx512"}
        Vector code to run; "" is the best this machine has. Changes time, never a bit.
    """

    ledger = None

    def __init__(
        self, n_threads: int = 0, *, histogram_bytes: int = HISTOGRAM_BYTES, instruction_set: str = ""
    ) -> None:
        self._n_threads = worker_threads(n_threads)
        _native.limit_spinning(spinning_threads())
        self._histogram_bytes = histogram_bytes
        self._instruction_set = instruction_set
        self._fit: _native.Fit | None = None

    def ingest(self, dataset: Dataset) -> _native.Plane:
        """Bin the data set with its own cuts."""
        cuts = dataset.cuts
        return _native.make_plane(
            dataset.columns.arrays, cuts.values, cuts.offsets, cuts.value_bins, n_threads=self._n_threads
        )

    def begin_fit(
        self,
        plane: _native.Plane,
        label: np.ndarray,
        weight: np.ndarray | None,
        params: Params,
        base_margin: np.float32,
        eval_planes: Sequence[_native.Plane] = (),
    ) -> None:
        """Set every margin to `base_margin`. Labels and weights are float32 of length `plane.n_rows`."""
        if self._fit is not None:
            raise SessionError("this backend has a fit already: open another one")
        self._fit = _native.Fit(
            plane,
            np.ascontiguousarray(label, np.float32),
            None if weight is None else np.ascontiguousarray(weight, np.float32),
            list(eval_planes),
            **{name: getattr(params, name) for name in SHARED_PARAMS},
            base_margin=float(base_margin),
            n_threads=self._n_threads,
            histogram_bytes=self._histogram_bytes,
            instruction_set=self._instruction_set,
        )

    def tune(self) -> None:
        """Nothing: threads and vectors are chosen by rule."""

    def rounds(self, choice: Choice) -> Iterable[None]:
        """As many as `plan` finds something to split in."""
        return repeat(None)

    def grow(self, choice: Choice) -> dict[str, float]:
        """All rounds of a tree in one native call: leafwise would make a thousand. Ctrl-C ends it between rounds."""
        return self._begun().grow(choice)

    def begin_tree(self, index: int) -> None:
        """Gradients from the margins, quantised; the root is the only open node."""
        self._begun().begin_tree()

    def build_histograms(self) -> None:
        """Histograms of the new open nodes, of each pair only the smaller one's."""
        self._begun().build_histograms()

    def find_splits(self, choice: Choice) -> None:
        """Best splits of the new open nodes, or the level's common one; siblings are subtracted on the way."""
        self._begun().find_splits(choice)

    def plan(self, choice: Choice) -> int:
        """Choose what is divided now, under the budgets, ``best`` some ahead of their turn; returns how many nodes."""
        return self._begun().plan(choice)

    def partition(self) -> None:
        """Move the rows of the planned nodes to their children, which become open."""
        self._begun().partition()

    def end_tree(self) -> None:
        """Add leaf values to the margins of training and eval rows, keep the tree."""
        self._begun().end_tree()

    def eval_margins(self, index: int) -> np.ndarray:
        """Current float32 margins of eval plane `index`."""
        return self._begun().eval_margins(index)

    def end_fit(self) -> JoinedTrees:
        """All trees; thresholds are the session's."""
        arrays = self._begun().take_trees()
        offsets = arrays.pop("offsets")
        arrays["threshold"] = np.zeros(offsets[-1])
        return JoinedTrees(arrays, offsets)

    def close(self) -> None:
        """Release everything, threads included."""
        self._fit = None

    def _begun(self) -> _native.Fit:
        if self._fit is None:
            raise SessionError("this backend has no fit under way: begin_fit comes first, close last")
        return self._fit
