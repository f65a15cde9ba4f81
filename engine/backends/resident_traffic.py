"""Bytes that the kernels of a fit or an ingest read and wrote, row by row. May import launches, shape and kernels.

What a kernel takes besides rows, such as histograms and node tables, is not counted: small where rows are many.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.backends.resident_launches import FitLaunches
from engine.backends.resident_shape import FitShape
from engine.backends.resident_state import TILE_WIDTH
from engine.kernels.traffic import bytes_per_row

COUNTED = {"build_tile": "rows_tiled", "build_direct": "rows_direct", "partition": "rows_partitioned"}
"""Kernels that take a part of the rows, and where FitState counts them."""

WHOLE = ("start_rows", "differentiate", "quantise_rows")
"""Kernels that take every row at each launch."""


def fit_traffic(
    shape: FitShape, launches: FitLaunches, launched: Mapping[str, int], state: np.ndarray
) -> dict[str, int]:
    """Bytes by kernel, of those that go through training rows.

    Parameters
    ----------
    shape, launches
        Of the fit.
    launched : mapping of str to int
        How often, by kernel.
    state : structured scalar of FIT_STATE
        As the last tree left it.
    """
    names = {
        "bin_bytes": 2 if launches.wide else 1,
        "weight_bytes": 4 if shape.weighted else 0,
        "n_groups": launches.n_groups,
        "n_tiles": -(-len(shape.value_bins) // TILE_WIDTH),
    }
    traffic = {}
    for kernel, times in launched.items():
        rows = _rows(kernel, times * shape.n_rows, state)
        if rows is not None:
            traffic[kernel] = rows * bytes_per_row(kernel, names)
    return traffic


def _rows(kernel: str, every_time: int, state: np.ndarray) -> int | None:
    """How many rows a kernel took in all; None if it takes none, or how many is not known."""
    for family, counter in COUNTED.items():
        if kernel.startswith(family):
            return int(state[counter])
    return every_time if kernel.startswith(WHOLE) else None
