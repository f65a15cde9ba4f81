"""Drives a backend by hand, for what a session does not let a caller choose. Imports the engine only."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import cache
from typing import Any

import numpy as np

import engine
from engine import _native, numerics
from engine.backends import Backend, Plane
from engine.backends.native import NativeBackend
from engine.growers import GROWERS
from engine.objectives import get_objective
from engine.params import Params, parse_params
from engine.tree import Tree

RESPONSES = {
    "squared_error": lambda margins: margins.astype(np.float64),
    "logistic": lambda margins: numerics.sigmoid(margins.astype(np.float64)),
    "poisson": lambda margins: numerics.exp(np.clip(margins.astype(np.float64), -80.0, 80.0)),
}
"""Contract §5 in NumPy: float64 responses to float32 margins."""


def grow(backend: Backend, train: engine.Dataset, given: dict[str, Any]) -> list[Tree]:
    """Trees of a data set; the backend is closed after it."""
    params = parse_params(given)
    base_margin = get_objective(params.objective).base_margin(train.label, train.weight, params.base_score)
    with closing(backend):
        return grow_on(backend, backend.ingest(train), train.label, train.weight, params, base_margin)


def grow_on(
    backend: Backend,
    plane: Plane,
    label: np.ndarray,
    weight: np.ndarray | None,
    params: Params,
    base_margin: np.float32,
    eval_planes: Sequence[Plane] = (),
) -> list[Tree]:
    """Trees of a plane that the backend has; it stays open, so that margins can be asked for."""
    backend.begin_fit(plane, label, weight, params, base_margin, eval_planes)
    for index in range(params.n_estimators):
        backend.begin_tree(index)
        GROWERS[params.grower](backend)
        backend.end_tree()
    return backend.end_fit()


@cache
def instruction_sets() -> tuple[str, ...]:
    """What the native backend can be forced to on this machine; it says so itself."""
    return tuple(name for name in ("baseline", "avx2", "avx512") if _has(name))


def _has(instruction_set: str) -> bool:
    plane = _native.Plane.from_bins(np.zeros((1, 1), np.uint16), [1])
    with closing(NativeBackend(1, instruction_set=instruction_set)) as backend:
        try:
            backend.begin_fit(plane, np.zeros(1, np.float32), None, parse_params({}), np.float32(0))
        except ValueError as error:
            if "this machine has no" not in str(error):
                raise
            return False
    return True


def assert_same(trees: Sequence[Tree], expected: Sequence[Tree], who: str = "") -> None:
    """Every array of every tree, byte for byte; values are compared first, because they say where."""
    for number, (tree, other) in enumerate(zip(trees, expected, strict=True)):
        for name, array in other.arrays().items():
            where = f"{name} of tree {number} {who}"
            np.testing.assert_array_equal(getattr(tree, name), array, err_msg=where)
            assert getattr(tree, name).tobytes() == array.tobytes(), where
