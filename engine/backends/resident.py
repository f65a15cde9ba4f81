"""Fits that live on a device: every transaction is a few launches, and nothing waits (DESIGN.md §4). May import device.

The host writes FitState once and enqueues; kernels decide. A tree's launches depend on the parameters alone, so they
are recorded with the first tree and replayed for every other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.backends import Choice
from engine.backends.device_plane import DevicePlane
from engine.backends.resident_launches import FitLaunches
from engine.backends.resident_shape import FitShape, eval_offsets, fit_bytes
from engine.backends.resident_state import BUFFERS, EVAL_PLANE, FINISHED_NODE, FIT_STATE, PAIRED, WARP
from engine.backends.resident_traffic import fit_traffic
from engine.backends.resident_trees import breadth_first
from engine.backends.resident_tuning import tuned
from engine.device import Buffer, Device, Launch
from engine.device.ledger import Ledger
from engine.device.memory import allocate, release
from engine.device.tuner import Tuning
from engine.errors import SessionError
from engine.params import Params
from engine.tree import Tree

if TYPE_CHECKING:
    from engine.dataset import Dataset

POLLED_ROUNDS = 256
"""Where the limits allow more rounds than this, the host asks now and then whether the tree is finished."""

ROUNDS_BETWEEN_POLLS = 8
LARGEST_FREQUENCY = 7


class ResidentBackend:
    """`engine.backends.Backend` on a device with kernels.

    Parameters
    ----------
    open_device : callable
        Makes a device; called at once, and again if `ingest` has given the first one to a plane.
    """

    def __init__(self, open_device: Callable[[], Device]) -> None:
        self._open_device = open_device
        self._device: Device | None = open_device()
        self.ledger: Ledger | None = self._device.ledger
        self._buffers: dict[str, Buffer] = {}
        self._planes: tuple[DevicePlane, ...] = ()
        self._tree_launches: list[Launch] = []
        self._recorded: dict[tuple[Launch, ...], object] = {}
        self._trees: list[Tree] = []
        self._n_waiting = 0

    def ingest(self, dataset: Dataset) -> DevicePlane:
        """Bin the data set with its own cuts. The plane takes the device over."""
        if self._buffers:
            raise SessionError("a fit is under way on this backend's device: ingest comes before, or open another one")
        device = self._opened()
        with device.ledger.during("ingest"):
            plane = DevicePlane.ingest(device, dataset)
        self._device = None
        return plane

    def begin_fit(
        self,
        plane: DevicePlane,
        label: np.ndarray,
        weight: np.ndarray | None,
        params: Params,
        base_margin: np.float32,
        eval_planes: Sequence[DevicePlane] = (),
    ) -> None:
        """Set every margin to `base_margin`. Labels and weights are float32 of length `plane.n_rows`."""
        if self._buffers:
            raise SessionError("this backend has a fit already: open another one")
        device = self._opened()
        weight = None if weight is None or (weight == 1).all() else weight
        eval_rows = tuple(other.n_rows for other in eval_planes)
        shape = FitShape(params, plane.n_rows, plane.value_bins, weight is not None, eval_rows)
        width = shape.group_width(device.shared_limit)
        self._launches = FitLaunches(shape, plane.wide, width, device.n_processors)
        self._shape, self._planes = shape, (plane, *eval_planes)
        with device.ledger.during("begin"):
            self._buffers = allocate(device, fit_bytes(shape))
            self._upload(label, weight)
            self._first_state = self._state(weight, base_margin)
            self._start(Tuning())

    def tune(self) -> None:
        """How this device builds such histograms best, measured or remembered; without a clock it stays as it is."""
        self._check_begun()
        device, shape = self._device, self._shape
        if device.clock is None or not shape.rounds or shape.most_leaves < 2:
            return
        with device.ledger.during("tune"):
            self.begin_tree(0)
            beginning = self._take_launches()
            self.build_histograms()
            building = self._take_launches()
            device.ledger.homes.clear()  # what a trial launches is the tuner's
            with device.ledger.trials():
                tuning = tuned(device, self._buffers, shape, beginning, building)
            self._start(tuning)

    def rounds(self, choice: Choice) -> Iterator[None]:
        """As many as the limits allow; where that is too many, until the device says that the tree is finished."""
        for number in range(self._shape.rounds):
            if self._is_polled and number and number % ROUNDS_BETWEEN_POLLS == 0 and self._is_finished():
                return
            yield

    def grow(self, choice: Choice) -> None:
        """Nothing: rounds are the caller's."""

    def begin_tree(self, index: int) -> None:
        """Gradients from the margins, quantised; the root is the only open node."""
        self._check_begun()
        if self._n_waiting == self._shape.trees_held:
            self._fetch_trees()
        self._enqueue("gradients", self._launches.gradients())

    def build_histograms(self) -> None:
        """Histograms of the nodes on the build lists: of two siblings, the smaller."""
        self._enqueue("histogram", self._launches.histogram())

    def find_splits(self, choice: Choice) -> None:
        """The best split of each searched node, or the scores of the level's common cuts."""
        self._enqueue("find", self._launches.find())

    def plan(self, choice: Choice) -> None:
        """Choose what splits now; only the device knows what."""
        self._enqueue("plan", self._launches.plan())

    def partition(self) -> None:
        """Move the rows of the planned nodes to their children, and open these."""
        self._enqueue("partition", self._launches.partition())

    def end_tree(self) -> None:
        """Close the open nodes, add leaf values to eval rows, keep the tree; training rows get theirs with the next."""
        self._enqueue("leaves", self._launches.leaves())
        self._run_tree()
        self._n_waiting += 1

    def eval_margins(self, index: int) -> np.ndarray:
        """Current float32 margins of eval plane `index`; one synchronisation."""
        self._check_begun()
        rows = self._shape.eval_rows
        with self._device.ledger.during("evaluate"):
            return self._device.download(
                self._buffers["eval_margins"], np.float32, (rows[index],), eval_offsets(rows)[index]
            )

    def end_fit(self) -> list[Tree]:
        """All trees; thresholds are the session's."""
        self._check_begun()
        with self._device.ledger.during("finish"):
            self._fetch_trees()
            self._book_traffic()
        return self._trees

    def close(self) -> None:
        """Release everything."""
        if self._device is not None:
            release(self._device, self._buffers)
            self._device.close()
        self._device, self._planes, self._recorded, self._trees = None, (), {}, []

    # ---- beginning ---------------------------------------------------------------------------------------------------

    def _opened(self) -> Device:
        if self._device is None:
            self._device = self._open_device()
            self.ledger = self._device.ledger
        return self._device

    def _check_begun(self) -> None:
        if not self._buffers:
            raise SessionError("this backend has no fit under way: begin_fit comes first, close last")

    def _upload(self, label: np.ndarray, weight: np.ndarray | None) -> None:
        shape, upload = self._shape, self._device.upload
        feature_of = np.repeat(np.arange(len(shape.value_bins), dtype=np.int32), np.diff(shape.first_bin) // WARP)
        upload(self._buffers["value_bins"], np.ascontiguousarray(shape.value_bins, np.int32))
        upload(self._buffers["first_bin"], shape.first_bin)
        upload(self._buffers["feature_of"], feature_of)
        upload(self._buffers["label"], np.ascontiguousarray(label, np.float32))
        if weight is not None:
            upload(self._buffers["weight"], np.ascontiguousarray(weight, np.float32))
        if shape.eval_rows:
            upload(self._buffers["evals"], self._evals())
        self._device.clear(self._buffers["partition_words"])

    def _evals(self) -> np.ndarray:
        evals = np.zeros(len(self._shape.eval_rows), EVAL_PLANE)
        evals["columns"] = [plane.columns.address for plane in self._planes[1:]]
        evals["margins"] = np.add(eval_offsets(self._shape.eval_rows), self._buffers["eval_margins"].address)
        evals["n_rows"] = self._shape.eval_rows
        return evals

    def _state(self, weight: np.ndarray | None, base_margin: np.float32) -> np.ndarray:
        shape, params = self._shape, self._shape.params
        state = np.zeros((), FIT_STATE)
        self._set_addresses(state)
        if weight is None:
            state["weight"] = 0
        else:
            state["frequencies"] = ((weight <= LARGEST_FREQUENCY) & (weight == np.rint(weight))).all()
        fields = {
            "n_rows": shape.n_rows,
            "slot_cells": shape.slot_cells,
            "n_features": len(shape.value_bins),
            "n_evals": len(shape.eval_rows),
            "n_bins": shape.n_bins,
            "group_width": self._launches.group_width,
            "n_groups": self._launches.n_groups,
            "n_build_blocks": self._launches.n_build_blocks,
            "most_nodes": shape.most_nodes,
            "trees_held": shape.trees_held,
            "learning_rate": params.learning_rate,
            "max_leaves": params.max_leaves,
            "node_budget": shape.most_nodes if shape.is_speculation_bounded else 2**62,
            "max_depth": params.max_depth,
            "constant_hessian": shape.layout == "count",
            "base_margin": base_margin,
        }
        for name, value in fields.items():
            state[name] = value
        names = ("reg_lambda", "reg_alpha", "gamma", "min_child_weight", "min_samples_leaf")
        state["reg"] = tuple(getattr(params, name) for name in names)
        return state

    def _start(self, tuning: Tuning) -> None:
        """The state before the first tree, whatever has happened since."""
        self._first_state["chunk_rows"], self._first_state["direct_below"] = tuning.tile_rows, tuning.least_tiled
        self._device.upload(self._buffers["state"], self._first_state)
        for launch in self._launches.start():
            self._device.launch(launch, self._buffers["state"])

    def _set_addresses(self, state: np.ndarray) -> None:
        plane = self._planes[0]
        state["tiles"], state["columns"] = plane.tiles.address, plane.columns.address
        for name in BUFFERS:
            buffer = self._buffers[name]
            state[name] = [buffer.address, buffer.address + buffer.nbytes // 2] if name in PAIRED else buffer.address

    # ---- launching ---------------------------------------------------------------------------------------------------

    @property
    def _is_polled(self) -> bool:
        return self._shape.rounds > POLLED_ROUNDS

    def _is_finished(self) -> bool:
        self._run_tree()
        offset = FIT_STATE.fields["is_finished"][1]
        with self._device.ledger.during("plan"):
            return bool(self._device.download(self._buffers["state"], np.uint32, (1,), offset)[0])

    def _enqueue(self, phase: str, launches: Sequence[Launch]) -> None:
        self._check_begun()
        self._device.ledger.homes.update(dict.fromkeys((launch.kernel for launch in launches), phase))
        self._tree_launches += launches

    def _take_launches(self) -> tuple[Launch, ...]:
        launches = tuple(self._tree_launches)
        self._tree_launches.clear()
        return launches

    def _run_tree(self) -> None:
        """Replay what was enqueued since the last run; the first time it is recorded."""
        launches = self._take_launches()
        with self._device.ledger.during("leaves"):
            if launches not in self._recorded:
                self._recorded[launches] = self._device.record(launches, self._buffers["state"])
            self._device.replay(self._recorded[launches])

    def _book_traffic(self) -> None:
        """What the kernels read and wrote, if they were timed: only then are the rows they took worth asking for."""
        ledger = self._device.ledger
        if ledger.kernel_seconds:
            state = self._device.download(self._buffers["state"], FIT_STATE, ())
            ledger.moved(fit_traffic(self._shape, self._launches, ledger.kernels, state))

    # ---- trees -------------------------------------------------------------------------------------------------------

    def _fetch_trees(self) -> None:
        """Bring home what waits on the device."""
        if not self._n_waiting:
            return
        shape = (self._n_waiting, self._shape.most_nodes)
        self._trees += [
            breadth_first(nodes) for nodes in self._device.download(self._buffers["trees"], FINISHED_NODE, shape)
        ]
        self._n_waiting = 0
