"""How much memory a fit will take, by a stated formula for each library. May import engine, knobs and data.task."""

from __future__ import annotations

from dataclasses import dataclass

import engine
from ladders.contenders.knobs import Knobs
from ladders.data.task import Shape


@dataclass(frozen=True)
class Linear:
    """Bytes: so many a cell of the training matrix, so many a row of it."""

    cell: float
    row: float

    def over(self, shape: Shape) -> int:
        """The bytes of a task of that shape."""
        return round(shape.train * (self.cell * shape.columns + self.row))


CPU = {
    "engine": Linear(2.4, 135),
    "xgboost": Linear(3.2, 180),
    "lightgbm": Linear(5.8, 120),
    "catboost": Linear(5.3, 150),
    "bonsai": Linear(1.6, 120),
}
"""Host memory over the resident input on a CPU: through the published rows' medians of `rss_bytes` at 262,242 x 19
(flights) and 463,715 x 90 (msd-shaped), 255 bins."""

GPU_HOST = {
    "engine": Linear(0.1, 8),
    "xgboost": Linear(9.7, 0),
    "lightgbm": Linear(3.0, 0),
    "catboost": Linear(7.8, 0),
    "bonsai": Linear(0.1, 8),
}
"""The same where trees grow on a GPU: published peaks at 16,777,216 x 128 less the input (research/harness.md §1)."""

DEVICE = {"xgboost": Linear(8.8, 0), "lightgbm": Linear(1.92, 76), "bonsai": Linear(1.0, 75)}
"""Device memory: published peaks at 16,777,216 x 128 and x 1,024 (research/harness.md §1)."""

CATBOOST_SHARE = 0.95
"""Of the card, whatever the data: its default `gpu_ram_part`."""


def host_bytes(library: str, shape: Shape, target: str) -> int:
    """Host memory of one fit, the task's arrays counted."""
    return shape.nbytes + (CPU if target == "cpu" else GPU_HOST)[library].over(shape)


def device_bytes(library: str, shape: Shape, asked: Knobs, card_bytes: int | None = None) -> int | None:
    """Device memory of one fit; None on a CPU, and for CatBoost on a card of unknown size.

    The engine's is its own exact reckoning, `engine.estimate_memory`.
    """
    if asked.device == "cpu":
        return None
    if library == "engine":
        limits = asked.model_dump(include={"max_depth", "max_leaves", "max_bin"})
        return engine.estimate_memory({"grower": asked.growth, **limits}, (shape.train, shape.columns)).peak
    if library == "catboost":
        return None if card_bytes is None else round(CATBOOST_SHARE * card_bytes)
    return DEVICE[library].over(shape)
