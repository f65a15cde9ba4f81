"""The transactions that growers call and every backend offers (DESIGN.md §4). Imports backends lazily.

A backend owns the node table: which nodes are open, their rows, histograms and best splits. The grower only says what
happens next, so the same three growers drive NumPy, C++ and the device plane.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from engine.device import open_device
from engine.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from engine.dataset import Dataset
    from engine.device.ledger import Ledger
    from engine.params import Params
    from engine.tree import Tree

Choice = Literal["every", "best", "common"]
"""Which open nodes a plan splits: every one it can, the single best one, or all by one common cut."""

_BACKENDS = {
    "reference": ("engine.backends.reference", "ReferenceBackend"),
    "cpu": ("engine.backends.native", "NativeBackend"),
}
_RESIDENT = ("emulated", "cuda")


class Plane(Protocol):
    """A data set's bins as one backend keeps them; opaque to everyone else."""

    n_rows: int
    n_features: int


class Backend(Protocol):
    """One fit's worth of device state. Not reusable; `close` is idempotent and safe in any state.

    Attributes
    ----------
    ledger : Ledger or None
        What crossed the bus in `ingest` or during the fit, by phase of `engine.profile`; None where there is no bus.
    """

    ledger: Ledger | None

    def ingest(self, dataset: Dataset) -> Plane:
        """Bin the data set with its own cuts. Stateless: the plane may be shared by later fits."""

    def begin_fit(
        self,
        plane: Plane,
        label: np.ndarray,
        weight: np.ndarray | None,
        params: Params,
        base_margin: np.float32,
        eval_planes: Sequence[Plane] = (),
    ) -> None:
        """Set every margin to `base_margin`. Labels and weights are float32 of length `plane.n_rows`."""

    def tune(self) -> None:
        """Measure what is best measured on this device and shape, unless it is known. Changes time, never a bit."""

    def rounds(self, choice: Choice) -> Iterable[None]:
        """One item for each round that a tree may take; endless where `plan` tells when to stop."""

    def grow(self, choice: Choice) -> Mapping[str, float] | None:
        """All rounds of a tree in one call, the transactions below in the growers' order, where calls would cost.

        Returns the seconds of each phase of `engine.profile`; None, having done nothing, if rounds are the caller's.
        """

    def begin_tree(self, index: int) -> None:
        """Gradients from the margins, quantised; the root is the only open node."""

    def build_histograms(self) -> None:
        """Histograms of the open nodes that have none: the smaller child by rows, its sibling by subtraction."""

    def find_splits(self, choice: Choice) -> None:
        """The best split of each open node that has none yet or, for ``common``, the level's one cut."""

    def plan(self, choice: Choice) -> int | None:
        """Choose what splits now, under the budgets. Returns how many nodes, or None if only the device knows."""

    def partition(self) -> None:
        """Move the rows of the planned nodes to their children, which become the open nodes."""

    def end_tree(self) -> None:
        """Close the open nodes, add leaf values to the margins of training and eval rows, keep the tree."""

    def eval_margins(self, index: int) -> np.ndarray:
        """Current float32 margins of eval plane `index`; one host synchronisation."""

    def end_fit(self) -> Sequence[Tree]:
        """All trees, breadth first (contract §11), `threshold` still zero: the session knows the cuts."""

    def close(self) -> None:
        """Release everything."""


def open_backend(device: str, n_threads: int = 0) -> Backend:
    """The backend of a device; a device that is not there raises, it is never replaced by another.

    Parameters
    ----------
    device : {"reference", "cpu", "emulated", "cuda"}
    n_threads : int
        Worker threads of the native backend; 0 is as many as this process may use.

    Raises
    ------
    DeviceUnavailableError
        If the device is unknown to this build or cannot be opened here.
    """
    if device in _RESIDENT:
        from engine.backends.resident import ResidentBackend

        return ResidentBackend(partial(open_device, device))
    if device not in _BACKENDS:
        raise DeviceUnavailableError(
            f"device '{device}' is not available in this build; choose one of {', '.join((*_BACKENDS, *_RESIDENT))}"
        )
    module, name = _BACKENDS[device]
    return getattr(import_module(module), name)(n_threads=n_threads)
