"""What a fit launches: kernels, grids and shared bytes of every transaction. May import the shape and device.

A pure function of the fit's shape and the device's size. Grids are persistent: at the most a few blocks a processor,
and no more than a round could ever use.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.backends.resident_shape import FitShape
from engine.backends.resident_state import LEAST_CHUNK_ROWS, PARTITION_ROWS, TILE_WIDTH, WARP
from engine.device import Launch

BLOCK = 256
BUILD_BLOCK = 512
"""Launch bounds of the kernels."""

LIST_SHARED, PARTITION_SHARED, MAXIMUM_SHARED, SUM_SHARED = 1024, 256, 32, 64
"""Shared bytes of the kernels, by their headers; those of the histogram tile are the shape's."""

BUILD_BLOCKS_PER_PROCESSOR = 4
BLOCKS_PER_PROCESSOR = 8


@dataclass(frozen=True)
class FitLaunches:
    """The launches of one fit's transactions.

    Attributes
    ----------
    shape : FitShape
    wide : bool
        Whether bins are uint16.
    group_width : int
        Features whose cells lie in shared memory together.
    n_processors : int
    """

    shape: FitShape
    wide: bool
    group_width: int
    n_processors: int

    @property
    def n_groups(self) -> int:
        """Groups of features."""
        return -(-self._n_features // self.group_width)

    @property
    def n_build_blocks(self) -> int:
        """Blocks that histogram chunks should keep busy."""
        return BUILD_BLOCKS_PER_PROCESSOR * self.n_processors

    def start(self) -> list[Launch]:
        """Before the first tree: margins, and rows in order."""
        return [self._by_thread("start_rows", self.shape.n_rows)]

    def gradients(self) -> list[Launch]:
        """Begin a tree: margins, gradients, quantising, the root."""
        n_rows = self.shape.n_rows
        return [
            self._by_thread(f"differentiate_{self.shape.params.objective}", n_rows, MAXIMUM_SHARED),
            self._by_thread("quantise_rows", n_rows, SUM_SHARED),
            _alone("open_root"),
        ]

    def histogram(self) -> list[Launch]:
        """Of two siblings, the smaller one's."""
        shape, kind = self.shape, f"{self._width}_{self.shape.layout}"
        n_tiles = -(-self._n_features // TILE_WIDTH)
        most_items = self.n_groups * (shape.n_rows // LEAST_CHUNK_ROWS + shape.n_slots)
        build = Launch(
            f"build_tile_{kind}",
            min(most_items, self.n_build_blocks),
            BUILD_BLOCK,
            shape.shared_bytes(self.group_width),
        )
        return [
            self._by_thread("clear_cells", shape.n_slots * shape.slot_cells),
            build,
            self._by_block(f"build_direct_{kind}", n_tiles * shape.n_slots),
        ]

    def find(self) -> list[Launch]:
        """The best split of each searched node, or the scores of the level's common cuts."""
        shape = self.shape
        searched = WARP * self._n_features * max(1, shape.n_slots // 2)
        if shape.kind == "common":
            return [
                self._by_thread(f"scan_level_{shape.layout}", searched),
                self._by_thread(f"score_level_{shape.layout}", shape.n_bins),
            ]
        return [
            self._by_thread(f"find_{shape.layout}", searched),
            self._by_block("reduce", shape.n_slots, LIST_SHARED),
        ]

    def plan(self) -> list[Launch]:
        """Choose what splits now."""
        if self.shape.kind == "common":
            return [_alone(f"choose_common_{self.shape.layout}")]
        return [_alone(f"choose_{self.shape.kind}")]

    def partition(self) -> list[Launch]:
        """Move the rows of the planned nodes to their children, and open these."""
        most_chunks = self.shape.n_rows // PARTITION_ROWS + (self.shape.most_nodes + 1) // 2
        return [
            self._by_block(f"partition_{self._width}", most_chunks, PARTITION_SHARED),
            _alone(f"open_{self.shape.kind}"),
        ]

    def leaves(self) -> list[Launch]:
        """End a tree: leaf values, and those of eval rows."""
        close = _alone("close_best" if self.shape.kind == "best" else "close")
        if not self.shape.eval_rows:
            return [close]
        return [close, self._by_thread(f"route_{self._width}", max(self.shape.eval_rows))]

    @property
    def _n_features(self) -> int:
        return len(self.shape.value_bins)

    @property
    def _width(self) -> str:
        return "u16" if self.wide else "u8"

    def _by_thread(self, kernel: str, most_threads: int, shared: int = 0) -> Launch:
        return self._by_block(kernel, -(-most_threads // BLOCK), shared)

    def _by_block(self, kernel: str, most_blocks: int, shared: int = 0) -> Launch:
        return Launch(kernel, min(most_blocks, BLOCKS_PER_PROCESSOR * self.n_processors), BLOCK, shared)


def _alone(kernel: str) -> Launch:
    return Launch(kernel, 1, BLOCK, LIST_SHARED)
