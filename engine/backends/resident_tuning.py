"""Tunes how a fit builds histograms, on the fit's own rows before its first tree. May import device and the shape.

What is measured is the recorded launches of a round's builds, so a trial is what a fit does; the answer is remembered
for the shape, the device and the build of the kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.backends.resident_shape import FitShape
from engine.backends.resident_state import FIT_STATE
from engine.device import Buffer, Device, Launch
from engine.device.tuner import Tuner, Tuning
from engine.device.tuning_store import TuningStore, tune_directory
from engine.kernels import source_digest

NODE_END = 88
"""Offset of ``Node.end`` in engine/kernels/state.cuh."""


def tuned(
    device: Device,
    buffers: Mapping[str, Buffer],
    shape: FitShape,
    beginning: Sequence[Launch],
    building: Sequence[Launch],
) -> Tuning:
    """The best way to build histograms of this shape; leaves the fit's state in disorder.

    Parameters
    ----------
    device : Device
        With a clock.
    buffers : mapping of str to Buffer
        A fit that has begun.
    shape : FitShape
    beginning, building : sequence of Launch
        What begins a tree, and what builds the histograms of a round.
    """
    store = TuningStore(device.model, source_digest(), tune_directory())
    name = shape_name(shape)
    tuning = store.get(name)
    if tuning is None:
        tuning = _measure(device, buffers, shape, beginning, building)
        store.put(name, tuning)
    return tuning


def shape_name(shape: FitShape) -> str:
    """What shapes that are tuned alike have in common: features, cells, and rows to a power of two."""
    return f"f{len(shape.value_bins)}.b{shape.n_bins}.{shape.layout}.n{shape.n_rows.bit_length()}"


def _measure(
    device: Device,
    buffers: Mapping[str, Buffer],
    shape: FitShape,
    beginning: Sequence[Launch],
    building: Sequence[Launch],
) -> Tuning:
    state = buffers["state"]
    for launch in beginning:
        device.launch(launch, state)
    recorded = device.record(building, state)
    open_again = Launch("open_again", 1, beginning[-1].block, beginning[-1].shared_bytes)

    def prepare(tuning: Tuning, rows: int) -> None:
        for name, value in (("chunk_rows", tuning.tile_rows), ("direct_below", tuning.least_tiled)):
            device.upload(state, np.array(value, np.uint32), FIT_STATE.fields[name][1])
        device.upload(buffers["nodes"], np.array(rows, np.uint32), NODE_END)
        device.launch(open_again, state)

    tuner = Tuner(prepare, lambda: device.replay(recorded), device.synchronise, device.clock)
    return tuner.tune(shape.n_rows)
